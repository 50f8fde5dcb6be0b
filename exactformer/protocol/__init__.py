"""Anybody's network under the paper's protocol, and its accuracy by depth beside others."""

from exactformer.protocol.recipe import Recipe, default_recipe
from exactformer.protocol.table import DepthTable, depth_table
from exactformer.protocol.train import Trained, train

__all__ = ["DepthTable", "Recipe", "Trained", "default_recipe", "depth_table", "train"]
