"""pictures - what bench/device/plot and doc/architecture.py share: pages of bars, lines
and boxes, by matplotlib.

A page is 900 units wide; places on it are in these units, from its upper left corner.  An SVG holds
its text as text and follows the reader's colour scheme, light or dark; the same CSV files and the
same matplotlib give the same bytes.  Colours are a variant's, "name: (label, colour)".
"""
import math
import re
import sys

try:
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch, Patch
except ImportError:
    sys.exit(f"{sys.argv[0]}: matplotlib is not there (Debian and Ubuntu: python3-matplotlib)")

WIDTH = 900
MARGIN = 20
BAR = 14  # height of a bar with the space below it
GAP = 14  # between groups of bars
LEGEND_COLUMNS = 4

TEXT = "#1f2328"
MUTED = "#59636e"
PAGE = "#ffffff"
GRID = "#d1d9e0"
AXIS = "#818b98"
DARK = (  # where a colour scheme is dark: property, colour on a light page, on a dark one
    ("fill", TEXT, "#f0f6fc"),
    ("fill", MUTED, "#9198a1"),
    ("fill", PAGE, "#0d1117"),
    ("stroke", GRID, "#3d444d"),
    ("stroke", AXIS, "#6b7480"),
)

matplotlib.rcParams.update({
    "font.family": ["system-ui", "-apple-system", "Segoe UI", "sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 12,
    "text.color": TEXT,
    "text.parse_math": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "gpusort",
})
matplotlib.set_loglevel("error")  # of these fonts it has the last, and need not say so at each text


def head_height(names):
    """Where what is below title and legend begins."""
    return 88 + 18 * math.ceil(len(names) / LEGEND_COLUMNS)


class Page:
    """A figure with title, subtitle and legend of the variants named."""

    def __init__(self, title, subtitle, variants, names, height):
        self.height = height
        self.title = f"{title}: {subtitle}"
        self.figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72)
        self.figure.patch.set_visible(False)
        self.figure.add_artist(FancyBboxPatch(
            (0.5, 0.5), WIDTH - 1, height - 1, boxstyle="round,pad=0,rounding_size=6", transform=None,
            facecolor=PAGE, edgecolor=GRID, linewidth=1, zorder=-1))
        self.text(MARGIN, 32, title, size=16, weight="bold")
        self.text(MARGIN, 50, subtitle, size=11, color=MUTED)
        if names:
            self.legend(variants, names)

    def legend(self, variants, names):
        entries = [Patch(color=variants[name][1], label=variants[name][0]) for name in names]
        # matplotlib fills columns first; this way a reader goes along the lines
        entries = [entry for column in range(LEGEND_COLUMNS) for entry in entries[column::LEGEND_COLUMNS]]
        self.figure.legend(
            handles=entries, ncol=LEGEND_COLUMNS, loc="upper left", bbox_to_anchor=self.place(MARGIN, 66),
            frameon=False, borderpad=0, borderaxespad=0, handlelength=1, handleheight=1, handletextpad=0.4,
            labelspacing=0.5, columnspacing=2)

    def place(self, x, y):
        """A point of the page as a fraction of it, from below."""
        return x / WIDTH, 1 - y / self.height

    def text(self, x, y, content, size=12, **options):
        self.figure.text(*self.place(x, y), content, fontsize=size, **options)

    def axes(self, x, y, width, height):
        """Axes with nothing drawn yet."""
        axes = self.figure.add_axes([*self.place(x, y + height), width / WIDTH, height / self.height])
        axes.patch.set_visible(False)
        for spine in axes.spines.values():
            spine.set_visible(False)
            spine.set_edgecolor(AXIS)
        axes.tick_params(which="both", length=0, labelsize=11, labelcolor=MUTED, color=AXIS)
        return axes

    def save(self, path):
        dark = "".join(f'[style*="{what}: {light}"] {{ {what}: {dark} !important }}\n' for what, light, dark in DARK)
        self.figure.savefig(path, format="svg", metadata={
            "Title": self.title, "Creator": None, "Date": None, "Format": None, "Type": None})
        with open(path, encoding="utf-8") as file:
            drawing = file.read()
        # points are pixels here, so that letters are of the size that a page's are
        drawing = re.sub(r'(height|width)="([0-9.]+)pt"', r'\1="\2"', drawing)
        drawing = drawing.replace("</title>", "</title>\n <style>@media (prefers-color-scheme: dark) {\n" + dark +
                                  "}</style>", 1)
        with open(path, "w", encoding="utf-8") as file:
            file.write(drawing)
        print(path)


def bars_height(groups):
    return sum(BAR * len(bars) + GAP for _, _, bars in groups)


def draw_bars(page, x, y, width, groups, labels_at=None):
    """Groups of bars one below the other, their axis at x.

    groups: [(label, what is below it or None, [(value or None, colour, text, ratio or "")])]; the
    labels stand at labels_at, if that is given.
    """
    height = bars_height(groups)
    longest = max(value for _, _, bars in groups for value, *_ in bars if value)
    axes = page.axes(x, y, width, height - GAP)
    axes.set_xlim(0, longest * width / (width - 96))  # room for a text behind the longest
    axes.set_ylim(height - GAP, 0)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines["left"].set_visible(True)
    top = 0
    for label, below, bars in groups:
        middle = y + top + BAR * len(bars) / 2
        if labels_at is not None:
            page.text(labels_at, middle - 1 if below else middle + 3, label)
            if below:
                page.text(labels_at, middle + 13, below, size=11, color=MUTED)
        for value, colour, text, ratio in bars:
            if value:
                axes.barh(top + BAR / 2, value, height=BAR - 2, color=colour, linewidth=0)
            written = axes.annotate(
                text, (value or 0, top + BAR / 2), xytext=(5, -1), textcoords="offset points", va="center",
                fontsize=11, color=TEXT if value else MUTED)
            if ratio:
                axes.annotate(ratio, (1, 0.5), xycoords=written, xytext=(6, 0), textcoords="offset points", va="center",
                              fontsize=11, fontweight="bold")
            top += BAR
        top += GAP


def draw_lines(page, title, variants, points, ticks, tick_text, rows_text, x, y, width, height, log):
    """Lines over numbers of rows; points: {variant: [(rows, value)]}; the texts print what is on the axes."""
    rows = sorted({n for line in points.values() for n, _ in line})
    axes = page.axes(x, y, width, height)
    axes.set_xscale("log")
    if log:
        axes.set_yscale("log")
    axes.minorticks_off()
    axes.set_xlim(rows[0], rows[-1] if len(rows) > 1 else rows[0] * 10)
    axes.set_ylim(ticks[0], ticks[-1])
    axes.set_xticks(rows, [rows_text(n) for n in rows])
    axes.set_yticks(ticks, [tick_text(tick) for tick in ticks])
    axes.grid(axis="y", color=GRID, linewidth=1)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", length=4)
    axes.spines["bottom"].set_visible(True)
    if not log:
        axes.axhline(1, color=AXIS, linewidth=1, zorder=1)
    for name, line in points.items():
        axes.plot(*zip(*line), color=variants[name][1], linewidth=2.5, marker="o", markersize=6, markeredgewidth=0,
                  clip_on=False)
    page.text(x - 34, y - 16, title)
