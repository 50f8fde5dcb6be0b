"""The paper's own command (its appendix), as a thin shim over `exactformer train`.

    python run_transformer_enumerated.py --model_type boolean --seeds 8739 7520 \
        --min_train_depth 1 --max_train_depth 2 --n_epochs 1000 --learning_rate 0.01 \
        --wdecay 0.0 --device cpu --learnable_pe --learnable_attn --learnable_mlp \
        --optimizer adamw --train_batch_size 500 --balanced --loss bce

It trains end to end, as the appendix describes, by `exactformer train --method end-to-end`. The
flags change that method's constants, which run.json has, in the folder that is written.
"""

import argparse
import sys

from exactformer.cli import main
from exactformer.domains.catalog import CATALOG
from exactformer.training.recipe import PAPER_SEEDS

# The paper's flags, and what they are called in the recipe.
CONSTANTS = {
    "n_epochs": "epochs",
    "learning_rate": "rate",
    "wdecay": "weight_decay",
    "optimizer": "optimizer",
    "train_batch_size": "batch",
    "balanced": "balanced",
}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Train models as the paper's appendix does; see `exactformer train`."
    )
    parser.add_argument("--model_type", required=True, choices=list(CATALOG))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(PAPER_SEEDS))
    parser.add_argument("--min_train_depth", type=int, default=1)
    parser.add_argument("--max_train_depth", type=int, default=2)
    parser.add_argument("--n_epochs", type=int)
    parser.add_argument("--learning_rate", type=float)
    parser.add_argument("--wdecay", type=float)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--learnable_pe", action="store_true")
    parser.add_argument("--learnable_attn", action="store_true")
    parser.add_argument("--learnable_mlp", action="store_true")
    parser.add_argument("--optimizer", choices=["adam", "adamw"])
    parser.add_argument("--train_batch_size", type=int)
    parser.add_argument("--balanced", action="store_true", default=None)
    parser.add_argument("--loss", choices=["bce"], default="bce")
    parser.add_argument("--out", help="folder for the weights; default runs/MODEL_TYPE")
    arguments = parser.parse_args()
    if (arguments.min_train_depth, arguments.max_train_depth) != (1, 2):
        parser.error(
            "expected --min_train_depth 1 and --max_train_depth 2, the depths that teach, "
            f"found {arguments.min_train_depth} and {arguments.max_train_depth}"
        )
    for part in ("pe", "attn", "mlp"):
        if not getattr(arguments, f"learnable_{part}"):
            parser.error(
                f"expected --learnable_{part}: every part is trained from random weights "
                f"(`exactformer construct` writes weights without training)"
            )
    return arguments


if __name__ == "__main__":
    arguments = parse_arguments()
    sys.argv = ["exactformer", "train", arguments.model_type, "--method", "end-to-end"]
    sys.argv += ["--device", arguments.device, "--seeds", ",".join(map(str, arguments.seeds))]
    sys.argv += ["--out", arguments.out or f"runs/{arguments.model_type}"]
    for flag, constant in CONSTANTS.items():
        if (value := getattr(arguments, flag)) is not None:
            sys.argv += ["--set", f"{constant}={value}"]
    main()
