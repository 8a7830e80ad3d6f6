#!/bin/bash
# Archives, there and back; see SKILL.md.
set -euo pipefail

umask 022
source=/tmp/content
mkdir -p "$source/sub folder"
if compgen -G "$SANDBOX_INPUT_DIR*" >/dev/null; then
    cp -r "$SANDBOX_INPUT_DIR". "$source"
else
    seq 1 5000 >"$source/numbers.txt"
    head -c 70000 /dev/urandom >"$source/sub folder/noise.bin"
    ln -s ../numbers.txt "$source/sub folder/link"
    chmod 750 "$source/numbers.txt"
fi

cd "$SANDBOX_FILES_DIR"
(cd "$source" && zip -q -r -y "$SANDBOX_FILES_DIR/content.zip" .)
tar -C "$source" --sort=name -czf content.tar.gz .
tar -C "$source" --sort=name -cJf content.tar.xz .
tar -C "$source" --sort=name --exclude='*.bin' -cf content.tar .
zip -T -q content.zip

same=()
for archive in content.zip content.tar.gz content.tar.xz; do
    mkdir "/tmp/$archive"
    case $archive in
    *.zip) unzip -q "$archive" -d "/tmp/$archive" ;;
    *) tar -C "/tmp/$archive" -xf "$archive" ;;
    esac
    diff -r --no-dereference "$source" "/tmp/$archive" && same+=("$archive")
done
xz --robot --list content.tar.xz >/dev/null
gzip -t content.tar.gz

sha256sum -- * >SHA256SUMS
sha256sum --check --strict --quiet SHA256SUMS
echo x >>content.tar
changed=no
sha256sum --check --strict --quiet SHA256SUMS 2>/dev/null || changed=yes

jq -n --argjson same "$(printf '%s\n' "${same[@]}" | jq -R . | jq -sc .)" \
    --arg changed "$changed" \
    --arg mode "$(stat -c %a /tmp/content.tar.xz/numbers.txt 2>/dev/null || echo none)" \
    --arg link "$(readlink "/tmp/content.zip/sub folder/link" || true)" \
    --argjson listed "$(tar -tf content.tar.xz | wc -l)" \
    --argjson left "$(tar -tf content.tar | wc -l)" \
    '{$same, change_found: ($changed == "yes"), $mode, $link, entries: $listed, entries_without_noise: $left}' \
    >"$SANDBOX_OUTPUT"
