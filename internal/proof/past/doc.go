// Package past tests that this version reads what earlier versions wrote: folders, journals and exports. testdata has
// an archive for each of three commits:
//
//   - 2c4f707e: tables compressed by Snappy, journals without generations, no identities of events. Programs must name
//     the Span of events by stream: 400 days, the default then
//   - a2a6aaf5: identities, kinds of key fields, retired classes, journals with generations
//   - c15cff35: tables compressed by MinLZ, sketches and other aggregates of rollups, additions with tokens; tiered
//     storage (cold_after), a change stream and a schema bundle
//
// An archive has the folder as a crash leaves it, the journal (undelivered points and events, a point of an erased
// entity, dead letters), exports, all cells (cells.txt), and what that version itself read (answers.txt).
//
// To make one, write a file of the commit's names of calls, and run from the repository's root:
//
//	c=c15cff35 data=$PWD/internal/proof/past/testdata
//	mkdir -p /tmp/past/$c /tmp/past/out && git archive $c | tar x -C /tmp/past/$c && cd /tmp/past/$c && mkdir internal/past
//	cp $data/writer.txt internal/past/main.go && cp $data/$c.txt internal/past/version.go && go run ./internal/past /tmp/past/out
//	tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=go= -C /tmp/past/out -c . | gzip -9n > $data/$c.tar.gz
//
// Then list it in allowed_tracked of .ci/check and in versions of past_test.go.
package past
