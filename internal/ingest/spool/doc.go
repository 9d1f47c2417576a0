// Package spool is a journal on disk: records are appended, read back in order, and forgotten once they are delivered. It
// survives the death of its process and of its machine. Records that cannot be delivered become dead letters, which can be
// looked at and appended again.
//
// # What is promised
//
//   - Append returns when its records are on disk and synced. A crash at any moment loses none of them, leaves none half
//     and gives no sequence number twice. All records of a call are there, or none.
//   - Sequence numbers rise from 0 without a gap, over restarts too, and are never given again. With Stream they name a
//     record for ever.
//   - A record is read again until it is marked by Done. A crash may bring back what was done within about the last quarter
//     of a second: delivery is at least once. Bury, Revive, Drop and SetMeta are durable when they return.
//   - The journal is bounded by Options.MaxBytes; beyond it appends get ErrFull, and Room waits.
//   - Damage is reported by ErrDamaged, by Open where it is there by then, and never as a shorter journal. Nothing
//     panics, whatever is in the file.
//
// # What it costs
//
// A commit syncs twice. Appends that wait at the same time share one, so that many small appends at once cost about as much
// as one; a single appender pays for each of its calls. Records go into blocks of up to 32 KiB; a block is removed when its
// last record is done, and is written anew without the others when three quarters of it are done and the rest stays. Memory
// holds about 100 bytes for each block, and a few bits for each record of blocks that are partly done; never the records.
// Open reads all that is to be delivered once.
//
// # Files
//
// The folder (mode 0700) holds journal.db, a bbolt file; lock, which is locked while the folder is open, and holds the
// stream, so that the loss of journal.db is noticed; reserve, 1 MiB that is given up when a full disk keeps delivered
// records from being removed; and for moments journal.tmp. All have mode 0600: records are whatever the caller puts there,
// as it is. Package private says which folders are refused.
//
// bbolt leaves what was deleted in the file until it needs the space. So the file is written anew by Scrub, where nothing was
// written for 10 seconds, and by Close: then it holds no record that is done. What the file system does with the old file's
// blocks, and what a crash leaves until the next idle moment, is not overwritten.
//
// journal.db never shrinks otherwise. One of 64 MiB or more of which less than an eighth is used is copied and replaced, when
// it is opened or while it is open; a crash leaves the old file or the new one, and while it is copied there are both. It
// grows to MaxBytes and about a twentieth where records are done in their order, about a third where they are not, and in
// either case by what a commit of up to 8 MiB writes anew and 4 MiB ahead.
//
// # Format
//
// bbolt's format, version 2, with pages of 4096 bytes in the machine's byte order, holds five tables. Each value ends with
// the CRC-32C, big-endian, over the table's name, the key's length in 4 bytes, the key and the value before it. Numbers are
// big-endian; uvarint and varint are those of encoding/binary in their shortest form.
//
//	blocks  sequence number of the first record, 8 bytes
//	        1, then for each sequence number from the first on either
//	          uvarint length+1, the record
//	        or, for a run of them that are done,
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
//	        next letter's number, and for blocks, dead, marks and metas, in this order, how many entries there are and
//	        the sum of their checksums
//
// The leading 1 of blocks, dead letters and the state is a version; a greater one gives ErrVersion.
//
// # What is checked, and what cannot be
//
// Open reads the file page by page before bbolt maps it, and checks what refers to what, that no page is used twice or is
// used and free, each entry's checksum, that the entries are exactly those that the state counts, and that the state is
// that of the last commit: a page that is lost, old or another one's shows. Of bbolt's first two pages, each commit writes
// the older one, last of all. So where one of them is torn, the journal opens with what the other one says: a commit that was
// torn was not acknowledged. If the newer page is damaged later, the last commit is lost with it, and nothing in the file
// can tell. Neither can it tell a disk that acknowledges a sync and then forgets the write of the first page, or all of the
// last commit, which leaves a journal that is whole and one commit shorter: nothing in the file can tell. The same is true of an old copy of
// the whole folder.
//
// What is damaged while the journal is open is noticed when it is read. Then the spool refuses everything, with that error;
// bbolt's mapping of the file stays until the process ends. One thing is not caught: a flip in the 4 bytes that say how many
// pages belong to a page, in a page of bbolt's tree, once Open has checked it; bbolt may then use up the memory.
//
// To get at a damaged journal's records, move the folder away, so that a new one is made, and take them out with bbolt's
// own tool.
package spool
