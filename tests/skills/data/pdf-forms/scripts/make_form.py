"""A form with a text field, a check box and a choice: make_form.py FILE.pdf"""

import sys

from reportlab.lib.colors import black, white
from reportlab.lib.pagesizes import A5
from reportlab.pdfgen import canvas


def make_form(path):
    page = canvas.Canvas(str(path), pagesize=A5)
    page.setTitle("Membership")
    page.setFont("Helvetica", 14)
    page.drawString(40, 540, "Membership")
    page.setFont("Helvetica", 10)
    form = page.acroForm
    for y, name, label in ((480, "name", "Name"), (440, "city", "City")):
        page.drawString(40, y + 6, label)
        form.textfield(name=name, tooltip=label, x=110, y=y, width=200, height=20, borderColor=black, fillColor=white)
    page.drawString(40, 406, "Newsletter")
    form.checkbox(name="newsletter", tooltip="Newsletter", x=110, y=400, size=18, borderColor=black, fillColor=white)
    page.drawString(40, 366, "Plan")
    form.choice(name="plan", tooltip="Plan", options=["basic", "full"], value="basic", x=110, y=360, width=100, height=20)
    page.showPage()
    page.drawString(40, 540, "Second page")
    page.save()


if __name__ == "__main__":
    make_form(sys.argv[1])
