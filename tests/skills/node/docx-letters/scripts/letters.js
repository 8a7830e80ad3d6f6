const fs = require('fs');
const path = require('path');
const JSZip = require('jszip');
const xml2js = require('xml2js');
const { csvParse } = require('d3-dsv');
const { documentOf, PARTS } = require('./parts.js');

const [table, ...rest] = process.argv.slice(2);
const subject = rest[0] === '--subject' ? rest[1] : 'Letter';
const out = process.env.SANDBOX_FILES_DIR;

async function write(row) {
  const zip = new JSZip();
  for (const [name, content] of Object.entries(PARTS)) zip.file(name, content);
  const items = row.items.split(';').filter(Boolean);
  zip.file('word/document.xml', documentOf(subject, row.name, row.city, items));
  return zip.generateAsync({ type: 'nodebuffer', compression: 'DEFLATE' });
}

const texts = (node) => (node['w:r'] || []).flatMap((run) => run['w:t'] || [])
  .map((text) => (typeof text === 'string' ? text : text._)).join('');

// With another library than it was written with.
async function read(file) {
  const zip = await JSZip.loadAsync(fs.readFileSync(file));
  const content = await zip.file('word/document.xml').async('string');
  const body = (await xml2js.parseStringPromise(content))['w:document']['w:body'][0];
  return {
    file: path.basename(file),
    paragraphs: body['w:p'].map(texts),
    rows: body['w:tbl'][0]['w:tr'].map((row) => row['w:tc'].map((cell) => texts(cell['w:p'][0]))),
  };
}

async function main() {
  const rows = csvParse(fs.readFileSync(path.join(process.env.SANDBOX_INPUT_DIR, table), 'utf8'));
  const skipped = [];
  const letters = [];
  const all = new JSZip();
  fs.mkdirSync(path.join(out, 'letters'));
  for (const [i, row] of rows.entries()) {
    if (!row.name) {
      skipped.push(i + 2);
      continue;
    }
    const content = await write(row);
    const file = path.join(out, 'letters', `${row.name.replace(/[^\p{L}\d]+/gu, '-')}.docx`);
    fs.writeFileSync(file, content);
    all.file(path.basename(file), content);
    letters.push(await read(file));
  }
  fs.writeFileSync(path.join(out, 'letters.zip'), await all.generateAsync({ type: 'nodebuffer' }));
  const packed = (await JSZip.loadAsync(fs.readFileSync(path.join(out, 'letters.zip')))).file(/docx$/);
  for (const one of packed) {
    const content = await one.async('nodebuffer');
    if (!content.equals(fs.readFileSync(path.join(out, 'letters', one.name)))) throw new Error(`${one.name} differs`);
  }
  fs.writeFileSync(process.env.SANDBOX_OUTPUT, JSON.stringify({
    letters, skipped, packed: packed.map((one) => one.name),
  }));
}

main();
