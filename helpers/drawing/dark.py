"""The only style sheet of notebooks. Each output contains it, because in Colab every output is a page of its own."""

# On a dark page this inverts the lightness of everything that is drawn on white, and keeps the hues.
DARK = (
    "<style>:is([data-jp-theme-light=false],[theme=dark],.vscode-dark) .on-white"
    "{filter:invert(.93) hue-rotate(180deg)}</style>"
)
