"""The one style sheet of notebooks. It stands in each output, because every output of Colab is a page of its own."""

# What is drawn on white: on a dark page light and dark change places, and every hue stays what it is.
DARK = (
    "<style>:is([data-jp-theme-light=false],[theme=dark],.vscode-dark) .on-white"
    "{filter:invert(.93) hue-rotate(180deg)}</style>"
)
