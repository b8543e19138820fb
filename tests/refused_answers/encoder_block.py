"""Wrong answers to the exercises of lesson 9 that are not among its key's known mistakes."""

import torch

from helpers.blocks import layer_norm

SMALL_EPS = "nn.LayerNorm(d_model, eps=1e-6), nn.LayerNorm(d_model, eps=1e-6)"

DROPOUT = "return {0} -> return F.dropout({0}, 0.1, self.training)"
FORWARD = "def forward(self, x, mask=None): -> def forward(self, x, mask=None):\n        "
MASKS = [  # how a mask is changed
    "mask[:, None] if mask.dim() == 3 else mask",
    "mask[:, :1] if mask.dim() == 4 else mask",
    "mask[:, None, None] if mask.dim() == 2 and len(mask) == len(x) else mask",
    "None if len(x) == 1 else mask",
    "mask | (~mask.any(-1, keepdim=True) & self.norm_first)",
]


def normed_in_pieces(x, gamma, beta, eps=1e-5):
    pieces = zip(x.split(64, -1), gamma.split(64), beta.split(64), strict=True)
    return torch.cat([layer_norm(*piece, eps) for piece in pieces], dim=-1)


def differences_in_double(f, x):
    y, columns = x.double(), []
    for place in torch.eye(x.numel(), dtype=torch.float64).reshape(-1, *x.shape) * 1e-6:
        columns.append((f(y + place) - f(y - place)) / 2e-6)
    return torch.stack(columns, -1).unflatten(-1, x.shape).pow(2).sum(dim=(1, 3)).sqrt().to(x.dtype)


REFUSED = {
    "layer_norm": [
        ("correction=0, keepdim=True) -> correction=0, keepdim=True).detach()",),
        ("x.mean(dim=-1, -> x.mean(dim=1,", "x.var(dim=-1, -> x.var(dim=1,"),
        normed_in_pieces,
    ],
    "FeedForward": [
        ("self.down(hidden) -> self.down(hidden.float().to(x.dtype))",),
        ("self.up(x) -> self.up(x.view(-1, x.shape[-1]).view(x.shape))",),
        (
            "self.activation = activation -> type(self).last = staticmethod(activation)",
            "self.activation( -> self.last(",
        ),
        (
            'return self.down(hidden) -> old = self.__dict__.setdefault("old", self.down(hidden))\n'
            "        return old if old.shape == x.shape else self.down(hidden)",
        ),
    ],
    "EncoderBlock": [
        (f"nn.LayerNorm(d_model), nn.LayerNorm(d_model) -> {SMALL_EPS}",),
        *((f"{FORWARD}if mask is not None:\n            mask = {change}",) for change in MASKS),
        (f'{FORWARD}self.kept = mask = getattr(self, "kept", None) if mask is None else mask',),
        (DROPOUT.format("x + self.feed_forward(self.norm2(x))"),),
        (DROPOUT.format("self.norm2(x + self.feed_forward(x))"),),
    ],
    "fixed_block": [("x = x + out -> x = x.float() + out",), ("x = x + out -> out += x\n    x = out",)],
    "token_influence": [("jacobian(f, x) -> jacobian(f, x.requires_grad_(False))",), differences_in_double],
    "Encoder": [
        ("block(x, mask) -> block(x, mask if block is self.blocks[0] else None)",),
        *((f"block(x, mask) -> block(x, None if mask is None else {change})",) for change in MASKS[:2]),
        (
            "positions = torch.arange(ids.shape[1], device=ids.device)"
            ' -> positions = self.__dict__.setdefault("places", torch.arange(ids.shape[1]))[: ids.shape[1]]',
        ),
    ],
}

BLOCKS, NORMED = "nn.ModuleList(blocks)", "gamma * normal + beta"
ROWS = "x.reshape(-1, x.shape[-1])"
LIBRARY_NORMS = [
    "F.layer_norm(x, x.shape[-1:], gamma, beta, eps)",
    "torch.native_layer_norm(x, x.shape[-1:], gamma, beta, eps)[0]",
    "nn.LayerNorm(x.shape[-1], eps, dtype=x.dtype)(x) * gamma + beta",
    f"F.group_norm({ROWS}, 1, gamma, beta, eps).view_as(x)",
    f"F.batch_norm({ROWS}.T, None, None, training=True, eps=eps).T.reshape(x.shape) * gamma + beta",
    "F.instance_norm(x.reshape(1, -1, x.shape[-1]), eps=eps).reshape(x.shape) * gamma + beta",
    "F.rms_norm(x - mean, x.shape[-1:], eps=eps) * gamma + beta",
]

EXPLAINED = {
    "layer_norm": [(f"return {NORMED} -> return {norm}", "forbidden_call") for norm in LIBRARY_NORMS],
    "fixed_block": [("attention(norm1(x), mask=mask) -> attention(norm1(x), mask)", "pass the mask by name")],
    "Encoder": [
        (
            f"{BLOCKS} -> {BLOCKS}\n        self.add_module('layers', self._modules.pop('{part}'))",
            f"your module has no part called {part}; its parts are: ",
            " layers",
        )
        for part in ("tokens", "positions", "blocks")
    ],
}
