"""The tour in python/examples/tour.ipynb runs, and its file has the outputs of its cells, numbers apart.

PATHLENGTH_WRITE_TOUR=1 writes the outputs into the file.
"""

import os
import shutil
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
TOUR = Path("python/examples/tour.ipynb")
SOURCE = Path("docs/guide/orders.c")

# Bytes: code hosts show small notebooks only.
LARGEST = 300_000


def outputs(notebook):
    """Of each cell of code, the kinds of its outputs and their words; numbers depend on the C library."""
    cells = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            words = []
            for output in cell.outputs:
                text = output.data.get("text/plain", "")
                # Wide tables are broken where their numbers are too long.
                words += [sorted(output.data), sorted(word for word in text.split() if is_word(word))]
            cells.append((cell.source, words))
    return cells


def is_word(word):
    # Dots are of texts that are cut; a backslash ends a line of a wide table; missing texts depend on pandas.
    return not any(letter.isdigit() for letter in word) and word not in ("\\", "NaN", "None") and "..." not in word


def test_the_tour_has_the_outputs_of_its_cells(tmp_path, monkeypatch):
    for path in (TOUR, SOURCE):
        (tmp_path / path).parent.mkdir(parents=True)
        shutil.copy(ROOT / path, tmp_path / path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    kept = nbformat.read(ROOT / TOUR, as_version=4)
    client = NotebookClient(
        nbformat.read(tmp_path / TOUR, as_version=4),
        timeout=120,
        record_timing=False,
        resources={"metadata": {"path": tmp_path / TOUR.parent}},
    )
    executed = client.execute()
    if os.environ.get("PATHLENGTH_WRITE_TOUR"):
        nbformat.write(executed, ROOT / TOUR)
        kept = executed
    found = outputs(executed)
    assert sum(len(words) > 0 for _, words in found) >= 15, "cells without outputs"
    for (source, now), (_, then) in zip(found, outputs(kept)):
        assert now == then, source
    assert not any("execution" in cell.metadata for cell in kept.cells)
    assert (ROOT / TOUR).stat().st_size < LARGEST
