package browser

import (
	"fmt"
	"time"

	"github.com/chromedp/chromedp"
)

// inkOf returns how many pixels of a column of a panel's chart have a colour, at a time of the view: one of the theme,
// or that of the line of an entity, as the legend has it ("line 0"). The address has a fixed time. A line has an
// opacity of more than 100 of 255, a band less.
const inkOf = `((panel, colour, at, least = 101, most = 255) => {
	const query = new URLSearchParams(location.search), from = Date.parse(query.get("from")), to = Date.parse(query.get("to"));
	const node = document.querySelectorAll(".panel")[panel], canvas = node.querySelector("canvas"), over = node.querySelector(".u-over");
	const probe = document.body.appendChild(document.createElement("i"));
	probe.style.color = colour.startsWith("line ") ? getComputedStyle(node.querySelectorAll(".legend .swatch")[Number(colour.slice(5))]).backgroundColor : colour.startsWith("--") ? getComputedStyle(document.documentElement).getPropertyValue(colour) : colour;
	const [r, g, b] = getComputedStyle(probe).color.match(/\d+/g).map(Number);
	probe.remove();
	const ratio = canvas.width / canvas.clientWidth;
	const x = Math.round(ratio * (over.offsetLeft + (at - from) / (to - from) * over.clientWidth));
	const pixels = canvas.getContext("2d").getImageData(x, Math.round(ratio * over.offsetTop), 1, Math.round(ratio * over.clientHeight)).data;
	let n = 0;
	for (let i = 0; i < pixels.length; i += 4) {
		if (pixels[i + 3] >= least && pixels[i + 3] <= most && Math.abs(pixels[i] - r) + Math.abs(pixels[i + 1] - g) + Math.abs(pixels[i + 2] - b) < 90) n++;
	}
	return n;
})`

// ink runs inkOf.
func ink(panel int, colour string, at time.Time, n *int) chromedp.Action {
	return chromedp.Evaluate(fmt.Sprintf(`%s(%d, %q, %d)`, inkOf, panel, colour, at.UnixMilli()), n)
}

// bandInk runs inkOf for the band of a line.
func bandInk(panel int, colour string, at time.Time, n *int) chromedp.Action {
	return chromedp.Evaluate(fmt.Sprintf(`%s(%d, %q, %d, 20, 100)`, inkOf, panel, colour, at.UnixMilli()), n)
}

// read waits until a page of charts has read and drawn what its address names.
var read = chromedp.Tasks{
	until(`document.querySelector(".source")?.textContent.startsWith("Read from") && !document.querySelector("main").classList.contains("busy")`),
	chromedp.Evaluate(drawn, nil, awaited),
}

// pixel returns the colour of a panel's chart at a time of the view, at a part of its height from the top.
func pixel(panel int, at time.Time, height float64, rgb *[]int) chromedp.Action {
	return chromedp.Evaluate(fmt.Sprintf(`((panel, at, height) => {
	const query = new URLSearchParams(location.search), from = Date.parse(query.get("from")), to = Date.parse(query.get("to"));
	const node = document.querySelectorAll(".panel")[panel], canvas = node.querySelector("canvas"), over = node.querySelector(".u-over");
	const ratio = canvas.width / canvas.clientWidth;
	const x = ratio * (over.offsetLeft + (at - from) / (to - from) * over.clientWidth), y = ratio * (over.offsetTop + height * over.clientHeight);
	return [...canvas.getContext("2d").getImageData(Math.round(x), Math.round(y), 1, 1).data];
})(%d, %d, %v)`, panel, at.UnixMilli(), height), rgb)
}
