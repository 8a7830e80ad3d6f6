"""The figures of one column; a gap is None and is left out."""

import statistics

OUTLIER_SIGMAS = 2.5


def slope(values):
    """The least-squares slope per row."""
    points = [(x, y) for x, y in enumerate(values) if y is not None]
    if len(points) < 2:
        return 0.0
    mean_x = statistics.fmean(x for x, _ in points)
    mean_y = statistics.fmean(y for _, y in points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread


def describe(labels, values):
    known = [value for value in values if value is not None]
    if not known:
        raise ValueError("a column has no numbers")
    mean = statistics.fmean(known)
    stdev = statistics.stdev(known) if len(known) > 1 else 0.0
    outliers = [
        {"label": label, "value": value}
        for label, value in zip(labels, values)
        if value is not None and stdev > 0 and abs(value - mean) > OUTLIER_SIGMAS * stdev
    ]
    return {
        "count": len(known),
        "mean": round(mean, 4),
        "median": round(statistics.median(known), 4),
        "stdev": round(stdev, 4),
        "min": min(known),
        "max": max(known),
        "slope": round(slope(values), 5),
        "outliers": outliers,
    }
