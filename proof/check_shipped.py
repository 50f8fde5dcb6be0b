"""Ask the extracted checker about each shipped model, of the paper and of machines over texts;
status 1 if one fails.
"""

import sys
from pathlib import Path

from exactformer.domains.catalog import CATALOG
from exactformer.domains.machine_catalog import MACHINES
from exactformer.verify.coq import check_with_kernel

WEIGHTS = Path(__file__).resolve().parent.parent / "exactformer" / "weights"


def main() -> int:
    tasks = [*CATALOG, *MACHINES]
    paths = [path for task in tasks for path in sorted((WEIGHTS / task).glob("*.safetensors"))]
    exact = 0
    for path in paths:
        answer = check_with_kernel(path)
        exact += answer == "exact"
        print(f"{path.parent.name}/{path.stem}: {answer}", flush=True)
    print(f"{exact} of {len(paths)} models are exact")
    return 0 if exact == len(paths) > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
