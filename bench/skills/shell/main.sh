#!/bin/bash
echo '{"hello": "world"}' >"$SANDBOX_OUTPUT"
