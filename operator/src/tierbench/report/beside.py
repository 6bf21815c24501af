"""Plots of published numbers beside one's own."""

from tierbench.advice.beside import Beside
from tierbench.advice.estimate import smaller_is_better
from tierbench.report.figures import Figure, measured_figure
from tierbench.report.layout import panel_of


def beside_figures(name: str, found: Beside | None) -> tuple[Figure, ...]:
    """A plot of each quantity that is published, with a line for each class measured and each class published."""
    if found is None:
        return ()
    figures = (
        measured_figure(f"{name}-beside-{quantity}", panel_of(found.table), quantity, log=smaller_is_better(quantity))
        for quantity in found.quantities
    )
    return tuple(figure for figure in figures if figure is not None)
