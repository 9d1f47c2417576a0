package skipscan

// A page of a skip scan ends within the history of one entity, and the next page begins with the next entity. A small page
// costs a request for every entity. A large page takes many short histories in one request, but reads far into a long one.
const (
	firstPage     = 32
	largestPage   = 1024
	rowsPerEntity = 16 // that a scan may read on average
	probe         = 32 // rows of a page that tests whether histories have become short
	firstPause    = 2 * probe
	longestPause  = 1 << 14
)

// pager decides how many rows the next page asks for. Pages grow while most of a page is needed, and shrink to the part that
// was. Once they have shrunk to one entity a page, a probe is made now and then, less and less often while probes find long
// histories. Pages spend a credit that entities earn, so a scan reads at most firstPage rows and rowsPerEntity for each entity,
// plus the points that are wanted of it.
type pager struct {
	each    int // points that are wanted of each entity
	largest int
	credit  int
	want    int
	pause   int // credit at which the next probe is due
	probing bool
}

func newPager(largest, each int) pager {
	return pager{each: each, largest: largest, credit: firstPage, want: firstPage, pause: firstPause}
}

// next returns the limit of the next page.
func (p *pager) next() int { return max(1, min(p.want, p.credit, p.largest)) }

// note takes in a page: its rows, how many of them were needed to reach its last entity, and how many entities it has.
func (p *pager) note(rows, needed, entities int) {
	p.earn(rows, entities)
	if p.probing {
		p.probing = false
		if needed < probe/2 {
			p.pause = min(2*p.pause, longestPause)
		} else {
			p.pause = firstPause
		}
	}
	p.want = max(p.each+1, min(2*needed, p.largest))
	if p.want < probe && p.credit >= p.pause {
		p.want, p.probing = probe, true
	}
}

// earn takes in the rows and the entities of a request.
func (p *pager) earn(rows, entities int) { p.credit += (rowsPerEntity+p.each-1)*entities - rows }

// share divides what is left of a scan among n that go on with its parts.
func (p pager) share(n int) pager {
	p.credit /= n
	p.probing = false
	return p
}
