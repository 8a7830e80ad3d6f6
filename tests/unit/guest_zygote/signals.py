import signal
import subprocess

print("probe:", [(s.name, str(signal.getsignal(s))) for s in sorted(signal.valid_signals() & set(signal.Signals))])
print(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.getitimer(signal.ITIMER_REAL))
print(subprocess.run(["grep", "^Sig[BIC]", "/proc/self/status"], capture_output=True).stdout)
with open("/proc/self/status") as status:
    print([line for line in status if line.startswith(("Sig", "Threads", "NoNewPrivs")) and "SigQ" not in line])
