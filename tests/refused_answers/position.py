"""Wrong answers to the exercises of lesson 2 that have no name in its key."""

REFUSED = {
    "equivariance_error": [(".max().item() -> .max()",), ("- f(x)[perm]  # -> - x[perm]  #",)],
    "sinusoidal_positions": [
        ("raise ValueError( -> raise AssertionError(",),
        ("if d_model % 2: -> if False:", "pairs.flatten(1) -> pairs.flatten(1)[:, :d_model]"),
    ],
    "add_positions": [
        ("table[:T] -> table[:T].detach()",),
        ("table[:T] -> table[:T].float()",),
        ("x + table[:T] -> x.add_(table[:T])",),
        ("if T > len(table): -> if False:", "table[:T] -> table[torch.arange(T) % len(table)]"),
    ],
    "shift_matrix": [("raise ValueError( -> raise AssertionError(",), ("offset / 10000 -> abs(offset) / 10000",)],
    "apply_rope": [("positions[:, None] -> (positions - positions[:1])[:, None]",)],
}
