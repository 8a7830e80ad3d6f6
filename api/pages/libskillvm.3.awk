# SPDX-License-Identifier: Apache-2.0
# Makes the manual of libskillvm of its header: comments are text, what stands behind one is what
# it speaks of.

function text(line) {
    gsub(/\\/, "\\e", line)
    gsub(/`/, "\\(ga", line)
    if (line ~ /^[.']/)
        line = "\\&" line
    return line
}

# A sentence is a line.
function sentences(line) {
    line = text(line)
    gsub(/\. /, ".\n", line)
    return line
}

# A comment's lines: an empty one parts paragraphs, four blanks begin an example.
function put_comment(   i, line, example) {
    for (i = 1; i <= n_comment; i++) {
        line = comment[i]
        if (line ~ /^    /) {
            if (!example)
                print ".Bd -literal -offset indent"
            example = 1
            print text(substr(line, 5))
        } else if (line == "") {
            # The blank line of an example is its own.
            if (example && comment[i + 1] ~ /^    /)
                print ""
            else if (!example && comment[i + 1] !~ /^    /)
                print ".Pp"
        } else {
            if (example)
                print ".Ed\n.Pp"
            example = 0
            print sentences(line)
        }
    }
    n_comment = 0
}

function flush(   i) {
    if (n_code > 0) {
        print ".Bd -literal"
        for (i = 1; i <= n_code; i++)
            print text(code[i])
        print ".Ed" (n_comment > 0 ? "\n.Pp" : "")
    }
    n_code = 0
    put_comment()
}

function begin_page() {
    print ".\\\" SPDX-License-Identifier: Apache-2.0"
    print ".Dd November 22, 2026\n.Dt LIBSKILLVM 3\n.Os"
    print ".Sh NAME\n.Nm libskillvm\n.Nd run skills in microVMs by a skillvm daemon"
    print ".Sh LIBRARY\npkg-config --cflags --libs skillvm"
    print ".Sh SYNOPSIS\n.In skillvm.h\n.Sh DESCRIPTION"
}

# Only what C sees of the header, without its guards and attributes.
/^#(if|ifdef|ifndef)/ { depth++ }
/^#(if|ifdef|ifndef|endif|include|pragma|define SKILLVM_H$)/ { if (/^#endif/) depth--; next }
depth > 1 { next }

/^\/\* SPDX/ { next }
/^\/\* ---- / {
    flush()
    sub(/^\/\* ---- /, "")
    sub(/ ----.*$/, "")
    print ".Ss " $0
    next
}
/^\/\*/ {
    if (n_code > 0)
        flush()
    in_comment = 1
}
in_comment {
    last = /\*\/$/
    sub(/ ?\*\/$/, "")
    sub(/^ *\/?\* ?/, "")
    if (!begun) {
        begin_page()
        begun = 1
    } else if ($0 != "" || (n_comment > 0 && !last)) {
        comment[++n_comment] = $0
    }
    if (last)
        in_comment = 0
    next
}
/^$/ {
    if (n_code > 0 || (n_comment > 0 && !described)) {
        flush()
        described = 1
    }
    next
}
{ code[++n_code] = $0 }

END {
    flush()
    print ".Sh SEE ALSO\n.Xr skillvm 1 ,\n.Xr skillvmd 8"
}
