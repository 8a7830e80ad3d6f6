/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/run_code.h"

#include "api/tools/schema.h"

const char run_code_description[] =
    "Runs a Python, bash or JavaScript (Node) script in a virtual machine of its own, without "
    "a network, and returns what it prints; use it to compute, to check something or to "
    "transform data. Files that it writes below /sandbox/out/files come back too. Nothing is "
    "kept from one call to the next but the files in /sandbox/session, where calls have the "
    "same session_id.";

const char run_code_schema[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"code\":{\"type\":\"string\",\"description\":\"the source of the script\"},"
    "\"lang\":{\"type\":\"string\",\"enum\":[\"python\",\"bash\",\"shell\",\"node\"],"
    "\"description\":"
    "\"the language; by default that of a first line such as #!/bin/bash, else python\"},"
    "\"input\":{\"description\":\"JSON that the script finds on standard input and in "
    "/sandbox/input.json\"},"
    "\"args\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"description\":"
    "\"arguments of the script\"}," SCHEMA_FILES ","
    "\"session_id\":{\"type\":\"string\",\"description\":\"a name of your choice (letters, "
    "digits and . _ : -): the script finds /sandbox/session as the last call with this name "
    "left it\"},"
    "\"timeout\":{\"type\":\"number\",\"description\":\"seconds, at most 600\"}},"
    "\"required\":[\"code\"],\"additionalProperties\":false}";
