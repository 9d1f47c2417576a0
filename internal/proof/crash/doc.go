// Package crash stops a process at each operation on files, and shows what a crash leaves.
//
// Run runs a workload in a process of its own and records each system call that changes files, by seccomp's user
// notification: on Linux only, elsewhere the tests are skipped. The workload notes what it begins and what is
// acknowledged, so one run serves for every crash.
//
// A failure saves the operations: -crash.log=FILE -crash.at=N repeats that crash. CONTRIBUTING.md has the other
// commands.
package crash
