package tour

import (
	"os/exec"
	"syscall"
)

// separate keeps Ctrl-C from a process, which this program ends itself, later. It ends with this program in
// any case, unless root started it: it then changes its user, and Linux forgets the signal.
func separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
