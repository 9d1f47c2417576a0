// Package rollupadd adds events up in the rows of a rollup, so that an event counts once whatever becomes of the answers of
// the service. It knows the stored form of what is added, and the three ways to be sure of it: a high-water mark for each
// stream, a marker for each message, or a single attempt.
//
// # Stored form
//
// The row of an entity and a span of time has, in the families of the rollup's class C, for a bucket with the cell timestamp
// of its start:
//
//	C.s  n             number of events
//	     c.<measure>   number of numbers
//	     s.<measure>   their sum
//	C.n  <measure>     the least
//	C.x  <measure>     the greatest
//
// and for the row as a whole, in C.c, with a cell timestamp at its end or a little later, so that nothing of it expires
// before the row's last bucket does:
//
//	h:<stream>     the sequence number up to which the stream's events are in the row, 20 digits
//	m:<d>:<id>     when the message was seen, 19 digits of milliseconds, and 16 hexadecimal digits that the writer drew;
//	               d is a hexadecimal digit, FNV-1a with 64 bits over the id, modulo 16
package rollupadd
