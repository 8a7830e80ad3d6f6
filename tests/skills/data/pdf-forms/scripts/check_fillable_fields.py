import sys

from pypdf import PdfReader

# Run by an agent before all else; see SKILL.md.

reader = PdfReader(sys.argv[1])
if reader.get_fields():
    print("This PDF has fillable form fields")
else:
    print("This PDF does not have fillable form fields")
