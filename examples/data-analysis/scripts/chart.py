"""A line chart as SVG text, by hand: the standard library draws nothing."""

from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 360
LEFT, RIGHT, TOP, BOTTOM = 60, 150, 46, 44
COLOURS = ("#1f6f8b", "#c8553d", "#588157", "#7a5195", "#b08900")
GRID_LINES = 5


def scale(columns):
    known = [value for values in columns.values() for value in values if value is not None]
    low, high = min(known), max(known)
    margin = (high - low) * 0.08 or 1.0
    return low - margin, high + margin


def path_of(values, x_of, y_of):
    """Line segments; a gap in the values is a gap in the line."""
    parts, pen_down = [], False
    for index, value in enumerate(values):
        if value is None:
            pen_down = False
            continue
        parts.append(f"{'L' if pen_down else 'M'}{x_of(index):.1f} {y_of(value):.1f}")
        pen_down = True
    return " ".join(parts)


def draw(title, labels, columns):
    low, high = scale(columns)
    steps = max(len(labels) - 1, 1)

    def x_of(index):
        return LEFT + (WIDTH - LEFT - RIGHT) * index / steps

    def y_of(value):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / (high - low)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="26" font-size="16" fill="#222222">{escape(title)}</text>',
    ]
    for line in range(GRID_LINES + 1):
        value = low + (high - low) * line / GRID_LINES
        y = y_of(value)
        out.append(
            f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#dddddd"/>'
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#555555">'
            f"{value:.2f}</text>"
        )
    for index in range(0, len(labels), max(len(labels) // 6, 1)):
        out.append(
            f'<text x="{x_of(index):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle" '
            f'fill="#555555">{escape(labels[index])}</text>'
        )
    for number, (name, values) in enumerate(columns.items()):
        colour = COLOURS[number % len(COLOURS)]
        y = TOP + 10 + 20 * number
        out.append(
            f'<path d="{path_of(values, x_of, y_of)}" fill="none" stroke="{colour}" '
            f'stroke-width="2"/>'
            f'<text x="{WIDTH - RIGHT + 14}" y="{y}" fill="{colour}">{escape(name)}</text>'
        )
    out.append("</svg>")
    return "\n".join(out) + "\n"
