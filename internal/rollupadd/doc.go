// Package rollupadd adds events to the rows of a rollup, so that each event counts once even if responses of the
// service are lost. It defines the stored form of the sums, and three ways to count once: a high-water mark for each
// stream, a marker for each message, or a single attempt.
//
// # Stored form
//
// The row of an entity and a span of time has, in the families of the rollup's class C, for a bucket with the cell
// timestamp of its start:
//
//	C.s  n             number of events
//	     c.<measure>   number of numbers
//	     s.<measure>   their sum
//	C.n  <measure>     the least
//	C.x  <measure>     the greatest
//
// and for the row as a whole, in C.c, with a cell timestamp at its end or a little later, so that none of it expires
// before the row's last bucket does:
//
//	h:<stream>     the row contains the stream's events up to this sequence number, 20 digits
//	m:<d>:<id>     when the message was seen, 19 digits of milliseconds, and 16 hexadecimal digits that the writer drew;
//	               d is a hexadecimal digit, FNV-1a with 64 bits over the id, modulo 16
package rollupadd
