package tour

import (
	"os/exec"
	"syscall"
)

// separate keeps Ctrl-C from a process, which this program ends itself, later. It ends with this program in any case.
func separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
