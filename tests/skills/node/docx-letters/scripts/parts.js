const XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
const PACKAGE = 'http://schemas.openxmlformats.org/package/2006';
const OFFICE = 'http://schemas.openxmlformats.org/officeDocument/2006';
const WORD = 'http://schemas.openxmlformats.org/wordprocessingml/2006/main';
const TYPE = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml';

exports.PARTS = {
  '[Content_Types].xml': `${XML}<Types xmlns="${PACKAGE}/content-types">`
    + '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    + `<Override PartName="/word/document.xml" ContentType="${TYPE}"/></Types>`,
  '_rels/.rels': `${XML}<Relationships xmlns="${PACKAGE}/relationships"><Relationship Id="rId1" `
    + `Type="${OFFICE}/relationships/officeDocument" Target="word/document.xml"/></Relationships>`,
};

const escaped = (text) => text.replace(/[<>&]/g, (c) => ({ '<': '&lt;', '>': '&gt;', '&': '&amp;' }[c]));
const paragraph = (text) => `<w:p><w:r><w:t xml:space="preserve">${escaped(text)}</w:t></w:r></w:p>`;
const row = (cells) => `<w:tr>${cells.map((cell) => `<w:tc>${paragraph(cell)}</w:tc>`).join('')}</w:tr>`;

exports.documentOf = (subject, name, city, items) => `${XML}<w:document xmlns:w="${WORD}"><w:body>`
  + paragraph(subject) + paragraph(`Dear ${name},`) + paragraph(`this goes to ${city}:`)
  + `<w:tbl>${row(['#', 'item'])}${items.map((item, i) => row([String(i + 1), item])).join('')}</w:tbl>`
  + `${paragraph('Yours')}</w:body></w:document>`;
