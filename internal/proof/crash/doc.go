// Package crash stops a process at each operation on files, and shows what a crash leaves.
//
// Run runs a workload in a process of its own and records each system call that changes files: it opens, writes, resizes, syncs,
// renames and removes. The kernel asks for each of them (seccomp's user notification), so the code that is tested needs no seam, and
// libraries are covered too. That works on Linux only; elsewhere the tests are skipped.
//
// A Disk is what the operations have made of the files, and what of it is synced. After any number of operations, Disk.Crash returns
// what a killed process leaves, and Loss what a machine leaves that loses its power: of what was not synced some sectors, in any order,
// and none of what a folder was not synced for. A test writes that to a folder, opens it and compares it with what was acknowledged.
// A Fault fails operations of the workload with ENOSPC, EIO or EMFILE.
//
// The workload notes what it begins and what is acknowledged, among the operations. So one run of it serves for every crash. The tests
// of this package do so with an embedded store and the journal of a writer; a short run takes about ten seconds.
//
//	go test ./internal/proof/crash -v -crash.tries 0 -timeout 3h
//
// tries all. A failure names the seed and the operation. Goroutines of the store do not run in the same order each time, so a
// failed test also saves the operations: -crash.log=FILE -crash.at=N tries again exactly that crash.
package crash
