"""Wrong answers to the exercises of lesson 9 that have no name in its key."""

SMALL_EPS = "nn.LayerNorm(d_model, eps=1e-6), nn.LayerNorm(d_model, eps=1e-6)"

REFUSED = {
    "layer_norm": [
        ("correction=0, keepdim=True) -> correction=0, keepdim=True).detach()",),
        ("x.mean(dim=-1, -> x.mean(dim=1,", "x.var(dim=-1, -> x.var(dim=1,"),
    ],
    "EncoderBlock": [(f"nn.LayerNorm(d_model), nn.LayerNorm(d_model) -> {SMALL_EPS}",)],
    "Encoder": [("block(x, mask) -> block(x, mask if block is self.blocks[0] else None)",)],
}
