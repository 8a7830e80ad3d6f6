import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Handlebars from 'handlebars';
import MarkdownIt from 'markdown-it';
import yaml from 'js-yaml';

// Debian's has no ES module of it.
const { load: parsePage } = createRequire(import.meta.url)('cheerio');
const input = JSON.parse(process.env.SANDBOX_INPUT);
const text = new MarkdownIt({ linkify: false });
const releases = yaml.load(input.releases, { schema: yaml.CORE_SCHEMA }).map((release) => ({
  ...release,
  notes: release.notes.map((note) => text.renderInline(note)),
}));

const numbers = (version) => String(version).split('.').map(Number);
function isBefore(a, b) {
  const [x, y] = [numbers(a), numbers(b)];
  const at = x.findIndex((n, i) => n !== (y[i] ?? 0));
  return at >= 0 && x[at] < (y[at] ?? 0);
}

const template = readFileSync(fileURLToPath(new URL('../templates/page.html', import.meta.url)), 'utf8');
const page = Handlebars.compile(template)({ product: input.product, releases });
writeFileSync(join(process.env.SANDBOX_FILES_DIR, 'index.html'), page);

const $ = parsePage(page);
const outOfOrder = releases.slice(1).filter((release, i) => isBefore(releases[i].version, release.version));
writeFileSync(process.env.SANDBOX_OUTPUT, JSON.stringify({
  title: $('title').text(),
  headings: $('h2').map((_, h) => $(h).text()).get(),
  notes: Object.fromEntries($('section').map((_, s) => [[$(s).attr('id'), $(s).find('li').length]]).get()),
  links: $('a').map((_, a) => $(a).attr('href')).get(),
  code: $('code').map((_, c) => $(c).text()).get(),
  outOfOrder: outOfOrder.map((release) => release.version),
}));
