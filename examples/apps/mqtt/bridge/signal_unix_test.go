//go:build unix

package bridge

import "syscall"

// savesState is the signal with which mosquitto saves its state.
const savesState = syscall.SIGUSR1
