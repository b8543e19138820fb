"""The colors of all figures, which color-blind readers can tell apart, and the color maps of heat maps.

Blue is an attention weight or a probability; queries, keys and values have `Q_COLOR`, `K_COLOR` and `V_COLOR`. Orange,
sky and pink are for areas and lines; text uses `ORANGE_INK`, `SKY_INK` and `PINK_INK`.
"""

from matplotlib.colors import LinearSegmentedColormap

# The palette of Okabe and Ito (2008), in the order in which figures use it.
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
SKY, RED, BLACK = "#56B4E9", "#D55E00", "#000000"
CYCLE = (BLUE, ORANGE, GREEN, PINK, SKY, RED)
# The same hues for text, with a contrast of at least 4.5 : 1 on white; other colors need no darker version.
ORANGE_INK, SKY_INK, GREEN_INK = "#8F5B00", "#1F6FA8", "#00735C"
PINK_INK, RED_INK, GRAY_INK = "#9B3D75", "#B23A00", "#595959"
INK = {ORANGE: ORANGE_INK, SKY: SKY_INK, GREEN: GREEN_INK, PINK: PINK_INK, RED: RED_INK}

# Queries, keys and values, in every figure of the course. These are dark enough for text as well.
Q_COLOR, K_COLOR, V_COLOR = "#B23A00", "#00805F", "#7A2F86"


# Dark gray below 0, white at 0, the hue above 0.
_HUES = (("queries", Q_COLOR), ("keys", K_COLOR), ("values", V_COLOR))
Q_MAP, K_MAP, V_MAP = (LinearSegmentedColormap.from_list(name, ["#4D4D4D", "#FFFFFF", hue]) for name, hue in _HUES)
WEIGHTS = "Blues"  # for attention weights and probabilities, which start at 0
SIGNED = "PuOr"  # for scores, embeddings and differences, which lie around 0
AROUND_ZERO = (SIGNED, Q_MAP, K_MAP, V_MAP)  # `heatmap` centers these at 0 unless it is given limits
