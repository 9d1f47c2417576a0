// Package crash stops a process at each operation on files, and shows what a crash leaves.
//
// Run runs a workload in a process of its own and records each system call that changes files, by seccomp's user
// notification, so the tested code needs no seam, and libraries are covered too. That works on Linux only; elsewhere
// the tests are skipped.
//
// A Disk is what the operations have made of the files, and what of it is synced. After any number of operations,
// Disk.Crash returns what a killed process leaves, and Loss what a machine leaves that loses its power: of what was not
// synced some sectors, in any order, and none of what a folder was not synced for. A Fault fails operations of the
// workload with ENOSPC, EIO or EMFILE.
//
// One run serves for every crash, because the workload notes what it begins and what is acknowledged. A failure saves
// the operations: -crash.log=FILE -crash.at=N tries exactly that crash again. CONTRIBUTING.md has the other commands.
package crash
