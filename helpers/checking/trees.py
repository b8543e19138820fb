"""Trees of tensors and plain values, as exercises take and return them: lists, tuples and dicts with leaves in them."""

from collections.abc import Callable, Iterator


def mapped(tree, change: Callable):
    """The tree with `change(leaf)` in the place of every leaf."""
    if isinstance(tree, dict):
        return {key: mapped(item, change) for key, item in tree.items()}
    return type(tree)(mapped(item, change) for item in tree) if isinstance(tree, (list, tuple)) else change(tree)


def leaves(tree) -> Iterator:
    if isinstance(tree, (list, tuple, dict)):
        for item in tree.values() if isinstance(tree, dict) else tree:
            yield from leaves(item)
    else:
        yield tree
