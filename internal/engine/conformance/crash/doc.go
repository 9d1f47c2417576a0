// Package crash tests the engine with a killed process, lost unsynced data, a full disk, no more open files, and
// damaged files. Acknowledged writes must survive, no write may be stored in part, and damage must be reported.
package crash
