import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import MarkdownIt from 'markdown-it'

const AT_A_TIME = 8

function linksOf(text) {
    const links = new Set()
    for (const block of new MarkdownIt({ linkify: true }).parse(text, {}))
        for (const token of block.children ?? [])
            if (token.type === 'link_open' && /^https?:/.test(token.attrGet('href'))) links.add(token.attrGet('href'))
    return [...links]
}

async function check(url) {
    try {
        const answer = await fetch(url, { signal: AbortSignal.timeout(60000) })
        const body = Buffer.from(await answer.arrayBuffer())
        return {
            url, result: answer.ok ? 'ok' : 'broken', status: answer.status, bytes: body.length,
            sha256: createHash('sha256').update(body).digest('hex'),
        }
    } catch (error) {
        return { url, result: 'unreachable', why: error.cause?.code ?? error.name }
    }
}

const { text } = JSON.parse(readFileSync(0, 'utf8'))
const left = linksOf(text), found = []
await Promise.all(Array.from({ length: AT_A_TIME }, async () => {
    while (left.length > 0) found.push(await check(left.shift()))
}))
found.sort((a, b) => (a.url < b.url ? -1 : 1))
const count = (result) => found.filter((link) => link.result === result).length
writeFileSync(process.env.SANDBOX_OUTPUT, JSON.stringify({
    links: found, ok: count('ok'), broken: count('broken'), unreachable: count('unreachable'),
}))
