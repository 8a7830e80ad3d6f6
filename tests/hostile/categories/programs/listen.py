# SPDX-License-Identifier: Apache-2.0
import socket
import threading


def serve(listener):
    while True:
        listener.accept()[0].sendall(GIVEN["word"].encode())


begin()
listener = attempt("listen", lambda: socket.create_server(("0.0.0.0", GIVEN["free_port"])))
if listener:
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
hold()
end()
