// Package spool is a journal on disk: it appends records, reads them in order, and forgets them once delivered. Records
// that cannot be delivered become dead letters, which can be read and appended again.
//
// # Guarantees
//
//   - Numbers of records and of dead letters rise from 0, over restarts too. After a crash they continue 2^32 higher,
//     because a lost commit may have been delivered.
//   - Damage is reported as ErrDamaged, but for the last commit before a crash (below). No file makes it panic.
//
// Memory holds about 100 bytes for each block and a few bits for each record of partly done blocks.
//
// # Files
//
// The folder (mode 0700) holds these files of mode 0600; package private says which folders are refused:
//
//   - journal.db, a bbolt file.
//   - lock, which is locked while the folder is open. It holds the stream, so that Open notices if journal.db is lost;
//     while closed also the number of the last commit, and whether journal.db holds no done record. Open reports
//     ErrDamaged if journal.db disagrees with that note, and else removes it. If Open could not sync journal.db, the
//     lock says so, and the next Open copies it first.
//   - reserve, 1 MiB, deleted to remove delivered records on a full disk.
//   - journal.tmp, during a copy.
//
// bbolt leaves deleted data in the file until a Scrub. The file shrinks only when it is 64 MiB or more and less than an
// eighth used. It grows to MaxBytes plus about a twentieth if records are done in their order, about a third if not,
// plus what a commit of up to 8 MiB rewrites, plus 4 MiB ahead.
//
// # Format
//
// The file has bbolt's format, version 2, with pages of 4096 bytes in the machine's byte order, and five tables. Each
// value ends with the CRC-32C, big-endian, over the table's name, the key's length in 4 bytes, the key and the value.
// Numbers are big-endian; uvarint and varint are those of encoding/binary in their shortest form.
//
//	blocks  sequence number of the first record, 8 bytes
//	        1, then for each sequence number from the first on either
//	          uvarint length+1, the record
//	        or, for a run of done records,
//	          uvarint 0, uvarint length of the run
//	        A block neither starts nor ends with such a run.
//	marks   sequence number of a block, 8 bytes
//	        one bit for each record of the block, lowest bit first: done
//	dead    number of the letter, 8 bytes
//	        1, uvarint sequence number, varint nanoseconds since 1970, uvarint attempts,
//	        uvarint length of the reason, the reason, the record
//	metas   a name, 1 to 256 bytes
//	        the value
//	state   "state"
//	        1, the stream in 16 bytes, then in 8 bytes each: bbolt's number of the commit, the next sequence number, the
//	        next letter's number, and for blocks, dead, marks and metas, in this order, the number of entries and
//	        the sum of their checksums
//
// The leading 1 is a version; a greater one gives ErrVersion. A block holds records of up to 32 KiB. It is removed when
// all are done, and rewritten without done ones when three quarters are.
//
// # What Open checks, and what it cannot check
// Open reads the file page by page before bbolt maps it. It checks references between pages, that no page is used twice
// or both used and free, each entry's checksum, that the state counts the entries, and that it belongs to the last
// commit. It finds lost, old and misplaced pages.
//
// A commit writes its pages, then the older of bbolt's first two pages, then syncs, and overwrites no page of the
// commit before. If the machine fails before the sync, Open goes back to the commit before; if part of the last one is
// in the file, Stats.Dropped has its number. Damage to pages of the last commit, and a disk that lost synced writes,
// look the same, unless the journal was closed: then Open reports both.
//
// Damage while the journal is open is noticed when read; the spool then refuses every call. But if the count of
// overflow pages in a page of bbolt's tree changes after Open checked it, bbolt may use up the memory.
//
// To recover a damaged journal's records, move the folder away and read it with bbolt's own tool.
package spool
