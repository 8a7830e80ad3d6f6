#!/usr/bin/env python3
"""A presentation from an outline, part by part: build.py OUTLINE.json FILE.pptx"""

import json
import sys
import zipfile

from lxml import etree
from lxml.builder import ElementMaker

BASE = "http://schemas.openxmlformats.org/"
NS = {
    "a": f"{BASE}drawingml/2006/main",
    "r": f"{BASE}officeDocument/2006/relationships",
    "p": f"{BASE}presentationml/2006/main",
}
A, P = (ElementMaker(namespace=NS[k], nsmap=NS) for k in "ap")
R_ID = f"{{{NS['r']}}}id"
KIND = "application/vnd.openxmlformats-officedocument.presentationml."
EMU = 12700


def xml(element):
    return etree.tostring(element, xml_declaration=True, encoding="UTF-8", standalone=True)


def shape(number, name, place, box, lines):
    left, top, width, height = (str(n * EMU) for n in box)
    where = P.spPr(A.xfrm(A.off(x=left, y=top), A.ext(cx=width, cy=height)), A.prstGeom(A.avLst(), prst="rect"))
    text = P.txBody(A.bodyPr(), A.lstStyle(), *(A.p(A.r(A.rPr(lang="en-US"), A.t(line))) for line in lines))
    about = P.nvSpPr(P.cNvPr(id=str(number), name=name), P.cNvSpPr(), P.nvPr(P.ph(type=place)))
    return P.sp(about, where, text)


def tree(*shapes):
    about = P.nvGrpSpPr(P.cNvPr(id="1", name=""), P.cNvGrpSpPr(), P.nvPr())
    return P.cSld(P.spTree(about, P.grpSpPr(), *shapes))


def relations(rows):
    make = ElementMaker(namespace=f"{BASE}package/2006/relationships")
    return xml(make.Relationships(*(
        make.Relationship(Id=f"rId{n}", Type=f"{NS['r']}/{kind}", Target=target)
        for n, (kind, target) in enumerate(rows, start=1)
    )))


def color_map():
    names = dict(bg1="lt1", tx1="dk1", bg2="lt2", tx2="dk2", hlink="hlink", folHlink="folHlink")
    return P.clrMap(**names, **{f"accent{n}": f"accent{n}" for n in range(1, 7)})


def theme():
    colors = [getattr(A, name)(A.srgbClr(val=value)) for name, value in (
        ("dk1", "000000"), ("lt1", "FFFFFF"), ("dk2", "1F3864"), ("lt2", "EEEEEE"), ("hlink", "0563C1"),
        ("folHlink", "954F72"), *((f"accent{n}", f"{n}0{n}0F0") for n in range(1, 7)))]
    order = ["dk1", "lt1", "dk2", "lt2", *(f"accent{n}" for n in range(1, 7)), "hlink", "folHlink"]
    colors.sort(key=lambda e: order.index(etree.QName(e).localname))
    fonts = [getattr(A, kind)(A.latin(typeface="DejaVu Sans"), A.ea(typeface=""), A.cs(typeface=""))
             for kind in ("majorFont", "minorFont")]
    fill = [A.solidFill(A.schemeClr(val="phClr")) for _ in range(6)]
    lines = [A.ln(A.solidFill(A.schemeClr(val="phClr")), w=str(EMU)) for _ in range(3)]
    effects = [A.effectStyle(A.effectLst()) for _ in range(3)]
    return A.theme(A.themeElements(
        A.clrScheme(*colors, name="Own"), A.fontScheme(*fonts, name="Own"),
        A.fmtScheme(A.fillStyleLst(*fill[:3]), A.lnStyleLst(*lines), A.effectStyleLst(*effects),
                    A.bgFillStyleLst(*fill[3:]), name="Own")), name="Own")


def build(slides, path):
    parts = {}
    main = [("slideMaster", "slideMasters/slideMaster1.xml"), ("theme", "theme/theme1.xml")]
    main += [("slide", f"slides/slide{n}.xml") for n in range(1, len(slides) + 1)]
    parts["_rels/.rels"] = relations([("officeDocument", "ppt/presentation.xml")])
    parts["ppt/_rels/presentation.xml.rels"] = relations(main)
    parts["ppt/presentation.xml"] = xml(P.presentation(
        P.sldMasterIdLst(P.sldMasterId({R_ID: "rId1"}, id="2147483648")),
        P.sldIdLst(*(P.sldId({R_ID: f"rId{n + 3}"}, id=str(256 + n)) for n in range(len(slides)))),
        P.sldSz(cx=str(960 * EMU), cy=str(540 * EMU)), P.notesSz(cx=str(540 * EMU), cy=str(960 * EMU))))
    parts["ppt/theme/theme1.xml"] = xml(theme())
    parts["ppt/slideMasters/slideMaster1.xml"] = xml(P.sldMaster(
        tree(), color_map(), P.sldLayoutIdLst(P.sldLayoutId({R_ID: "rId1"}, id="2147483649"))))
    parts["ppt/slideMasters/_rels/slideMaster1.xml.rels"] = relations(
        [("slideLayout", "../slideLayouts/slideLayout1.xml"), ("theme", "../theme/theme1.xml")])
    parts["ppt/slideLayouts/slideLayout1.xml"] = xml(P.sldLayout(tree(), P.clrMapOvr(A.masterClrMapping()), type="obj"))
    parts["ppt/slideLayouts/_rels/slideLayout1.xml.rels"] = relations(
        [("slideMaster", "../slideMasters/slideMaster1.xml")])
    for n, slide in enumerate(slides, start=1):
        shapes = [shape(2, "Title", "title", (48, 30, 864, 80), [slide["title"]])]
        if slide.get("points"):
            shapes.append(shape(3, "Content", "body", (48, 130, 864, 360), slide["points"]))
        parts[f"ppt/slides/slide{n}.xml"] = xml(P.sld(tree(*shapes), P.clrMapOvr(A.masterClrMapping())))
        parts[f"ppt/slides/_rels/slide{n}.xml.rels"] = relations([("slideLayout", "../slideLayouts/slideLayout1.xml")])
    write(parts, path)


def write(parts, path):
    make = ElementMaker(namespace=f"{BASE}package/2006/content-types", nsmap={None: f"{BASE}package/2006/content-types"})
    kinds = {"presentation": "presentation.main", "slides": "slide", "slideMasters": "slideMaster", "slideLayouts": "slideLayout"}
    types = [make.Default(Extension="rels", ContentType="application/vnd.openxmlformats-package.relationships+xml")]
    for name in parts:
        folder = name.split("/")[1].removesuffix(".xml")
        if name.endswith(".xml"):
            kind = KIND + kinds[folder] if folder in kinds else "application/vnd.openxmlformats-officedocument.theme"
            types.append(make.Override(PartName="/" + name, ContentType=kind + "+xml"))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", xml(make.Types(*types)))
        for name, data in parts.items():
            archive.writestr(name, data)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as outline:
        build(json.load(outline)["slides"], sys.argv[2])
