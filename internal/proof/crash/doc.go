// Package crash stops a process at each operation on files, and shows what a crash leaves.
//
// Run runs a workload in a process of its own and records each system call that changes files, by seccomp's user
// notification. That works on Linux only; elsewhere the tests are skipped.
//
// A Disk is what the operations have made of the files, and what of it is synced. After any number of operations,
// Disk.Crash returns what a killed process leaves, and Loss what a power loss leaves: some sectors of what was not
// synced, in any order, and no entry of an unsynced folder. A Fault fails operations with ENOSPC, EIO or EMFILE.
//
// One run serves for every crash: the workload notes what it begins and what is acknowledged. A failure saves the
// operations: -crash.log=FILE -crash.at=N repeats that crash. CONTRIBUTING.md has the other commands.
package crash
