package bridge

import (
	"os/exec"
	"syscall"
)

// endWithTest ends a process with that of the test, also if the test is killed or runs into its timeout.
func endWithTest(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
