# SPDX-License-Identifier: Apache-2.0
import glob
import pwd

begin()
homes = {entry.pw_dir for entry in pwd.getpwall()} | {"/root", os.path.expanduser("~")}
for home in sorted(homes | set(glob.glob("/home/*"))):
    for name in ("id_rsa", "id_ed25519", "config", "authorized_keys"):
        attempt(f"{name} of {home}", lambda: read(f"{home}/.ssh/{name}"))
attempt("the host's key by its path", lambda: read(GIVEN["ssh_key"]))
end()
