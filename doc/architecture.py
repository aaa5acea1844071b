#!/usr/bin/python3
"""architecture - draws doc/architecture.svg, the processes of gpusort and the path of a row through them, and
doc/ranges.svg, how the rows of a sort are shared out among the processes of a parallel plan:
  doc/architecture.py

Needs matplotlib (Debian and Ubuntu: python3-matplotlib).  Run it again after a change here: the same
matplotlib draws the same bytes.  Places are in units of the page, from its upper left corner.
"""
import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "..", "bench", "parts"))
import pictures
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

IN, OUT, CONTROL = "#2c9f45", "#2f7fd6", "#bf8700"


class Drawing(pictures.Page):
    def __init__(self, title, legend, height):
        super().__init__(title, legend, {}, [], height)
        self.height_drawn = height

    def box(self, x, y, width, height, title, *lines, strong=False, edge=pictures.AXIS):
        """A box with its title in the upper left corner and lines of text below it."""
        self.figure.add_artist(FancyBboxPatch(
            (x, self.height_drawn - y - height), width, height, boxstyle="round,pad=0,rounding_size=5", transform=None,
            facecolor="none", edgecolor=edge, linewidth=1.8 if strong else 1))
        self.text(x + 9, y + 18, title, size=13 if strong else 12, weight="bold")
        for i, line in enumerate(lines):
            self.text(x + 9, y + 35 + 15 * i, line, size=11, color=pictures.MUTED)

    def arrow(self, points, colour, number=None, at=None, both=False, dashed=False):
        """An arrow through points; its number in a disc on it, at the place given."""
        for i, (start, end) in enumerate(zip(points, points[1:])):
            style = ("<|" if both and i == 0 else "") + "-" + ("|>" if i == len(points) - 2 else "")
            self.figure.add_artist(FancyArrowPatch(
                (start[0], self.height_drawn - start[1]), (end[0], self.height_drawn - end[1]), transform=None, shrinkA=0, shrinkB=0,
                arrowstyle=style, mutation_scale=12, color=colour,
                linewidth=2, linestyle=(0, (4, 3)) if dashed else "solid", zorder=3))
        if number:
            self.text(*at, str(number), size=11, weight="bold", color="#fffffe", ha="center", va="center", zorder=5, bbox={
                "boxstyle": "circle,pad=0.25", "facecolor": colour, "edgecolor": "none"})


def draw_processes():
    page = Drawing("Processes and data", "green: the path of a row in; blue: its path out; dashed: the same where the service cannot; yellow: messages on sockets", 640)

    page.box(20, 70, 330, 545, "PostgreSQL server", strong=True)
    page.box(35, 100, 300, 92, "parallel workers", edge=pictures.GRID)
    page.box(48, 128, 115, 52, "partial plan", edge=pictures.GRID)
    page.box(200, 128, 125, 52, "GpuSortIngest", "key + row", edge=pictures.GRID)
    page.box(35, 206, 300, 276, "backend", edge=pictures.GRID)
    page.box(48, 236, 115, 52, "child plan", edge=pictures.GRID)
    page.box(200, 236, 125, 52, "GpuSort, input", "key + row", edge=pictures.GRID)
    page.box(200, 318, 125, 68, "GpuSort, stream", "read in place; ties", "by comparators", edge=pictures.GRID)
    page.box(48, 318, 115, 68, "parent plan", "LIMIT, window,", "join, client, ...", edge=pictures.GRID)
    page.box(48, 412, 277, 56, "tuplesort", "PostgreSQL's own, where the service cannot", edge=pictures.GRID)
    page.box(35, 496, 150, 106, "shared memory", "is the service ready?", "running sorts, counts:", "gpusort_jobs, _stats,", "_devices",
             edge=pictures.GRID)
    page.box(200, 496, 135, 106, "supervisor", "background worker:", "starts, watches and", "replaces the service,", "logs what it says",
             edge=pictures.GRID)

    page.box(425, 100, 115, 382, "staging pool", "memfd, mapped", "by both sides", strong=True, edge=pictures.AXIS)
    for y, title, lines, colour in ((162, "chunk", ("keys, rows,", "offsets"), IN), (230, "chunk", ("keys, rows,", "offsets"), IN),
                                    (318, "chunk", ("rows in order",), OUT), (386, "chunk", ("rows in order",), OUT)):
        page.box(435, y, 95, 60, title, *lines, edge=colour)
    page.text(437, 472, "4 MB each", size=11, color=pictures.MUTED)

    page.box(615, 70, 265, 412, "service gpusortd", strong=True)
    page.box(630, 100, 235, 52, "sessions", "main thread; one for each connection", edge=pictures.GRID)
    page.box(630, 168, 235, 52, "jobs", "a thread for each sort", edge=pictures.GRID)
    page.box(630, 236, 235, 232, "engines", edge=pictures.GRID)
    page.box(642, 266, 211, 68, "host engine", "built in; all CPU cores,", "rows in the service's memory", edge=pictures.GRID)
    page.box(642, 350, 211, 106, "cuda engine", "gpusort_cuda.so, where it loads:", "upload, device sort, check, gather",
             edge=pictures.GRID)
    page.box(615, 524, 265, 91, "GPUs", "rows and keys in device memory;", "sorted: (32 bits of key, row id),", "then what ties", strong=True)

    # in
    page.arrow([(163, 154), (200, 154)], IN, 1, (181, 154))
    page.arrow([(163, 262), (200, 262)], IN, 1, (181, 262))
    page.arrow([(325, 154), (380, 154), (380, 190), (435, 190)], IN, 2, (380, 172))
    page.arrow([(325, 262), (435, 262)], IN, 2, (380, 262))
    page.arrow([(530, 192), (585, 192), (585, 291), (642, 291)], IN)
    page.arrow([(530, 262), (585, 262), (585, 376), (642, 376)], IN, 3, (585, 262))
    page.arrow([(700, 456), (700, 524)], IN, 4, (700, 500))
    # out
    page.arrow([(795, 524), (795, 456)], OUT, 5, (795, 500))
    page.arrow([(642, 322), (563, 322), (563, 344), (530, 344)], OUT)
    page.arrow([(642, 430), (563, 430), (563, 416), (530, 416)], OUT, 6, (585, 430))
    page.arrow([(435, 360), (325, 360)], OUT, 7, (380, 360))
    page.arrow([(200, 352), (163, 352)], OUT, 8, (181, 352))
    # fallback
    page.arrow([(262, 386), (262, 412)], IN, dashed=True)
    page.arrow([(105, 412), (105, 386)], OUT, dashed=True)
    # messages, and commands within the service
    page.arrow([(335, 222), (363, 222), (363, 114)], CONTROL)
    page.arrow([(335, 113), (390, 113), (390, 86), (582, 86), (582, 126), (630, 126)], CONTROL, both=True)
    page.arrow([(335, 506), (645, 506), (645, 482)], CONTROL, both=True)
    page.arrow([(748, 152), (748, 168)], pictures.AXIS)
    page.arrow([(748, 220), (748, 236)], pictures.AXIS)

    for i, step in enumerate((
            "a row of the plan below", "its key and itself, written into a chunk", "the engine takes the chunk over",
            "upload, while more chunks fill", "row ids in order; rows are gathered", "rows moved in order into a chunk",
            "read where they lie", "handed to the plan above")):
        page.text(366, 527 + 12.5 * i, f"{i + 1}", size=10.5, weight="bold", color=OUT if i > 3 else IN)
        page.text(380, 527 + 12.5 * i, step, size=10.5, color=pictures.MUTED)
    page.save(os.path.relpath(os.path.join(HERE, "architecture.svg")))


def draw_ranges():
    page = Drawing("Above the sort, in every process", "green: rows in; blue: the rows of ranges, and what is made of them; numbers: ranges, in their order", 480)
    owners = (0, 1, 2, 1, 2, 0, 2, 1)
    columns = ("leader", "worker 0", "worker 1")

    page.box(20, 70, 200, 66, "GpuSortExchange", "gives range after range out,", "in order; in the leader", strong=True)
    for i, name in enumerate(columns):
        x = 20 + 215 * i
        page.box(x, 156, 200, 304, name, strong=i == 0)
        page.box(x + 12, 188, 176, 46, "GpuSortOutput", "claims the next range", edge=pictures.GRID)
        page.box(x + 12, 256, 176, 46, "WindowAgg", "starts over for each range", edge=pictures.GRID)
        page.box(x + 12, 324, 176, 46, "GpuSort", "emits the current range", edge=pictures.GRID)
        page.box(x + 12, 404, 176, 44, "partial plan", "this process's part", edge=pictures.GRID)
        page.arrow([(x + 60, 404), (x + 60, 370)], IN)
        page.arrow([(x + 130, 324), (x + 130, 302)], OUT)
        page.arrow([(x + 130, 256), (x + 130, 234)], OUT)
        if i > 0:
            page.box(x + 12, 84, 176, 46, "queue", "1 MiB, and work_mem", edge=OUT)
            page.arrow([(x + 130, 188), (x + 130, 130)], OUT)
    page.arrow([(150, 188), (150, 136)], OUT)
    page.arrow([(247, 100), (220, 100)], OUT)
    page.arrow([(462, 76), (462, 62), (233, 62), (233, 90), (220, 90)], OUT)

    page.box(690, 70, 190, 390, "service gpusortd", "sorted rows, cut where the", "columns of PARTITION BY,", "GROUP BY, ... change", strong=True)
    for i, owner in enumerate(owners):
        page.box(702, 142 + 38 * i, 166, 32, f"{i}   {columns[owner]}", edge=OUT)
    # every process puts its rows, and reads ranges
    page.arrow([(638, 340), (690, 340)], OUT, both=True)
    page.arrow([(80, 392), (660, 392), (690, 392)], IN)
    page.text(644, 384, "rows in", size=10.5, color=IN)
    page.text(644, 332, "ranges", size=10.5, color=OUT)
    page.save(os.path.relpath(os.path.join(HERE, "ranges.svg")))


draw_processes()
draw_ranges()
