package skipscan

// A page of a skip scan ends within the history of one entity, and the next page begins with the next entity. Small
// pages need a request per entity. A large page holds many short histories, but reads far into a long one.
const (
	firstPage     = 32
	largestPage   = 1024
	rowsPerEntity = 16 // rows that a scan may read per entity on average
	firstPause    = 2 * firstPage
	longestPause  = 1 << 14
)

// pager chooses the size of the next page. Pages grow while most of their rows are needed, and shrink to the part that
// was needed. At one entity per page, the pager now and then probes with a larger page, less often after each probe
// that finds long histories. Entities earn a credit that pages spend. So a scan reads at most firstPage rows in total,
// plus rowsPerEntity rows and the wanted points per entity.
type pager struct {
	each    int // points that are wanted of each entity
	largest int
	probe   int // rows of a page that tests whether histories have become short
	few     int // entities that are still wanted; 0 is all
	credit  int
	want    int
	pause   int // credit at which the next probe is due
	probing bool
}

// newPager returns the pager of a scan that takes that few entities, or all if few is 0. The first page of a scan for
// few is for histories of one row, and none is larger than what the credit of their number allows.
func newPager(largest, each, few int) pager {
	first := firstPage
	if few > 0 {
		first, largest = min(first, few), min(largest, rowsPerEntity*few)
	}
	return pager{each: each, largest: largest, probe: first, few: few, credit: firstPage, want: first, pause: firstPause}
}

// next returns the limit of the next page.
func (p *pager) next() int { return max(1, min(p.want, p.credit, p.largest)) }

// note records a page: its rows, how many of them were needed to reach its last entity, and its entities.
func (p *pager) note(rows, needed, entities int) {
	p.earn(rows, entities)
	if p.probing {
		p.probing = false
		if needed < p.probe/2 {
			p.pause = min(2*p.pause, longestPause)
		} else {
			p.pause = firstPause
		}
	}
	p.want = min(2*needed, p.largest)
	if p.few > 0 && entities > 0 { // no more than the wanted entities need, if their histories are as long
		p.few = max(1, p.few-entities)
		p.want = min(p.want, p.few*((rows+entities-1)/entities))
	}
	p.want = max(p.each+1, p.want)
	if p.want < p.probe && p.credit >= p.pause {
		p.want, p.probing = p.probe, true
	}
}

// earn records the rows and the entities of a request.
func (p *pager) earn(rows, entities int) { p.credit += (rowsPerEntity+p.each-1)*entities - rows }

// share returns the pager for each of n parts of the rest of a scan.
func (p pager) share(n int) pager {
	p.credit /= n
	p.probing = false
	return p
}
