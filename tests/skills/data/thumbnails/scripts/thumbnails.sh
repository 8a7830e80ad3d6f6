#!/usr/bin/env bash
# Thumbnails and a contact sheet; see SKILL.md.
set -euo pipefail

work=/tmp/pictures
mkdir -p "$work" "${SANDBOX_FILES_DIR}thumbs"
if compgen -G "$SANDBOX_INPUT_DIR*" >/dev/null; then
    cp "$SANDBOX_INPUT_DIR"* "$work"
else
    convert -size 300x200 gradient:red-blue "$work/gradient.png"
    convert -size 100x400 xc:'#00ff00' -fill black -pointsize 40 -annotate +10+60 'Ab' "$work/tall.jpg"
    convert -size 256x256 plasma:tomato-steelblue -seed 1 "$work/plasma.webp"
fi
for picture in "$work"/*; do
    convert "$picture" -auto-orient -thumbnail 64x64 -strip "${SANDBOX_FILES_DIR}thumbs/$(basename "${picture%.*}").png"
done
montage "${SANDBOX_FILES_DIR}thumbs/"*.png -geometry 70x70+2+2 -tile 3x -background white "${SANDBOX_FILES_DIR}sheet.png"
convert "${SANDBOX_FILES_DIR}thumbs/gradient.png" -resize 32x32! "${SANDBOX_FILES_DIR}icon.ico"
mogrify -path /tmp -format gif -colors 8 "${SANDBOX_FILES_DIR}thumbs/tall.png"

sizes=$(cd "${SANDBOX_FILES_DIR}thumbs" && identify -format '%f %wx%h\n' ./*.png | jq -R 'split(" ") | {key: .[0], value: .[1]}' | jq -s from_entries)
green=$(convert "${SANDBOX_FILES_DIR}thumbs/tall.png" -format '%[pixel:p{8,60}]' info:)
# Red is above and blue below, as in the picture.
upright=$(convert "${SANDBOX_FILES_DIR}thumbs/gradient.png" -format '%[fx:p{32,1}.r > 0.9 && p{32,1}.b < 0.1 && p{32,41}.b > 0.9 && p{32,41}.r < 0.1]' info:)
differing=$(compare -metric AE "${SANDBOX_FILES_DIR}thumbs/tall.png" "${SANDBOX_FILES_DIR}thumbs/plasma.png[16x64+0+0]" null: 2>&1 || true)
jq -n --argjson sizes "$sizes" --arg green "$green" --arg upright "$upright" --arg differing "$differing" \
    --arg sheet "$(identify -format '%wx%h' "${SANDBOX_FILES_DIR}sheet.png")" \
    --arg gif "$(identify -format '%m' /tmp/tall.gif)" \
    --arg icon "$(identify -format '%wx%h' "${SANDBOX_FILES_DIR}icon.ico")" \
    '{$sizes, $sheet, $gif, $icon, is_green: ($green | test("lime|0,255,0|srgb\\(0,25")), upright: ($upright == "1"), differing_pixels: ($differing | tonumber)}'
