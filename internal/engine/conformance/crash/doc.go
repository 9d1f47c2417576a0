// Package crash tests the engine with a killed process, lost unsynced data, a full disk, no more open files, and
// damaged files. Acknowledged writes must survive, no write may be stored in part, and damage must be reported.
//
// The flags -crash.rounds and -crash.faults choose the number of failures, -crash.seed their order.
package crash
