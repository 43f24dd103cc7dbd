// Draws the graphs of a report and answers to pointer and keys; a module. What stands in the data:
// optimizer/html/page_data.h.

const data = JSON.parse(document.getElementById('data').textContent);
const [boxWidth, boxHeight, layerHeight] = data.box;
const margin = 24;          // Around a drawing.
const mapWidth = 54;        // Of the overview beside it; as in report.css.
const largestScale = 3;
const labelScale = 0.34;    // Below this, boxes have no texts.
const kinds = {input: 0, operator: 1, carried: 2};
const carriedReasons = new Map(data.carried);
const text = (number) => data.strings[number];

// ---- The graphs as they are drawn.

const number3 = (value) => Number(value.toPrecision(3)).toString();
const microseconds = (value) => value < 1000 ? `${number3(value)} \u00b5s` : `${number3(value / 1000)} ms`;

function launchOf(graph, i) {
  const [op, layouts, implementation, mflop, megabytes, predicted] = graph.kernels[graph.launches.kernel[i]];
  return {op: text(op), layouts: text(layouts), implementation: text(implementation), mflop, megabytes, predicted,
          measured: graph.launches.measured[i]};
}

// Nodes with what they read, who reads them, and what they launch.
function nodesOf(graph) {
  const {boxes} = graph;
  const nodes = boxes.layer.map((layer, i) => ({
    index: i, layer, x: boxes.left[i], y: layer * layerHeight, kind: boxes.kind[i], label: text(boxes.label[i]),
    types: text(boxes.types[i]), attributes: text(boxes.attributes[i]), name: text(boxes.name[i]),
    region: boxes.region[i], twin: boxes.twin[i] - 1, reads: [boxes.reads[i]].flat().map((distance) => i - distance),
    readers: [], lane: [], launches: [], cost: 0, output: false,
  }));
  for (const node of nodes) for (const read of node.reads) nodes[read].readers.push(node.index);
  for (const [box, ...lane] of graph.lanes) nodes[box].lane = lane;
  for (const box of graph.outputs) nodes[box].output = true;
  graph.launches.box.forEach((box, i) => nodes[box].launches.push(launchOf(graph, i)));
  for (const node of nodes)
    for (const launch of node.launches) node.cost += launch.measured ?? launch.predicted ?? 0;
  for (const node of nodes)
    node.searched = [node.label, node.name, node.types, node.attributes,
                     ...node.launches.flatMap((launch) => [launch.op, launch.implementation, launch.layouts]),
                     node.kind === kinds.carried ? 'carried' : ''].join('\n').toLowerCase();
  return nodes;
}

// The points of a line, from above to below.
function pointsOf(above, below) {
  const points = [[above.x + boxWidth / 2, above.y + boxHeight]];
  for (let k = 0; k < below.layer - above.layer - 1 && k < above.lane.length; ++k) {
    const y = (above.layer + 1 + k) * layerHeight;
    points.push([above.lane[k], y], [above.lane[k], y + boxHeight]);
  }
  points.push([below.x + boxWidth / 2, below.y]);
  return points;
}

function edgesOf(nodes) {
  return nodes.flatMap((below) => below.reads.map((read) => ({
    from: nodes[read], to: below, points: pointsOf(nodes[read], below),
  })));
}

// ---- Colours.

const scheme = matchMedia('(prefers-color-scheme: dark)');
let colours = {};

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const names = ['text', 'faint', 'after', 'cost', 'box', 'box-line', 'input', 'carried', 'edge', 'edge-near',
                 'found', 'selected', 'tint', 'tint-line'];
  colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// Neighbouring numbers lie far apart on the wheel.
const hueOf = (region) => Math.round(region * 137.508) % 360;

function fillOf(node) {
  if (node.region > 0) return `hsl(${hueOf(node.region)} ${colours.tint})`;
  if (node.kind === kinds.input) return colours.input;
  return node.kind === kinds.carried ? colours.carried : colours.box;
}

const lineOf = (node) => node.region > 0 ? `hsl(${hueOf(node.region)} ${colours['tint-line']})` : colours['box-line'];

// The beginning of a text, as far as it fits.
const shortened = new Map();
function fitting(context, wanted, width) {
  const key = `${context.font}|${wanted}`;
  if (!shortened.has(key)) {
    let length = wanted.length;
    if (context.measureText(wanted).width > width)
      while (length > 1 && context.measureText(`${wanted.slice(0, length)}\u2026`).width > width) --length;
    shortened.set(key, length === wanted.length ? wanted : `${wanted.slice(0, length)}\u2026`);
  }
  return shortened.get(key);
}

// ---- One graph on the page.

class GraphView {
  constructor(figure, graph) {
    this.figure = figure;
    this.canvas = figure.querySelector('.drawing');
    this.map = figure.querySelector('.map');
    this.panel = figure.querySelector('.node');
    this.nodes = nodesOf(graph);
    this.edges = edgesOf(this.nodes);
    this.around = new Map(graph.around.map(([region, ...boxes]) => [region, boxes]));
    this.width = Math.max(graph.width, boxWidth);
    this.height = Math.max(graph.layers, 1) * layerHeight - (layerHeight - boxHeight);
    this.highest = this.nodes.reduce((most, node) => Math.max(most, node.cost), 0);
    this.view = {x: 0, y: 0, scale: 1};  // What of the drawing is at the upper left corner.
    this.selected = -1;
    this.hovered = -1;
    this.region = 0;
    this.found = new Set();
    this.moved = false;  // By a person: then a resize keeps the view.
    const carried = this.nodes.filter((node) => node.kind === kinds.carried).length;
    const changed = this.nodes.filter((node) => node.region > 0).length;
    figure.querySelector('.size').textContent = `${this.nodes.length} nodes, ${changed} changed` +
        (carried > 0 ? `, ${carried} carried` : '');
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    this.resize();
  }

  resize() {
    const ratio = devicePixelRatio || 1;
    for (const canvas of [this.canvas, this.map]) {
      canvas.width = Math.max(1, Math.round(canvas.clientWidth * ratio));
      canvas.height = Math.max(1, Math.round(canvas.clientHeight * ratio));
    }
    this.ratio = ratio;
    this.overview = null;
    if (!this.moved) this.showBeginning();
    this.draw();  // At once: a canvas of another size is empty.
  }

  get room() {
    return {width: Math.max(1, this.canvas.clientWidth - mapWidth), height: Math.max(1, this.canvas.clientHeight)};
  }

  // The scale at which a part of the drawing fits.
  scaleFor(width, height) {
    const {width: w, height: h} = this.room;
    return Math.min(w / (width + 2 * margin), h / (height + 2 * margin));
  }

  get smallestScale() { return Math.min(this.scaleFor(this.width, this.height), 1); }

  // A wide graph as a whole; a tall one from its top, as wide as it is.
  showBeginning() {
    const {width} = this.room;
    const scale = Math.min(1, Math.max(this.smallestScale, width / (this.width + 2 * margin)));
    this.view = {scale, x: this.width / 2 - width / scale / 2, y: -margin};
    if (this.height * scale <= this.room.height) this.centre(this.width / 2, this.height / 2);
  }

  fit() {
    this.view.scale = this.smallestScale;
    this.centre(this.width / 2, this.height / 2);
  }

  centre(x, y) {
    const {width, height} = this.room;
    this.view.x = x - width / this.view.scale / 2;
    this.view.y = y - height / this.view.scale / 2;
    this.redraw();
  }

  pan(dx, dy) {
    this.moved = true;
    this.view.x += dx / this.view.scale;
    this.view.y += dy / this.view.scale;
    this.redraw();
  }

  // Around a point of the canvas.
  zoom(factor, x = this.room.width / 2, y = this.room.height / 2) {
    const {view} = this;
    const scale = Math.min(largestScale, Math.max(this.smallestScale / 2, view.scale * factor));
    view.x += x / view.scale - x / scale;
    view.y += y / view.scale - y / scale;
    view.scale = scale;
    this.moved = true;
    this.redraw();
  }

  // Brings boxes into view, readable where they are few.
  reveal(indices) {
    if (indices.length === 0) return;
    const nodes = indices.map((i) => this.nodes[i]);
    const left = Math.min(...nodes.map((node) => node.x)), top = Math.min(...nodes.map((node) => node.y));
    const right = Math.max(...nodes.map((node) => node.x)) + boxWidth;
    const bottom = Math.max(...nodes.map((node) => node.y)) + boxHeight;
    this.view.scale = Math.max(this.smallestScale, Math.min(1, this.scaleFor(right - left, bottom - top)));
    this.moved = true;
    this.centre((left + right) / 2, (top + bottom) / 2);
  }

  at(x, y) {
    const dx = this.view.x + x / this.view.scale, dy = this.view.y + y / this.view.scale;
    return this.nodes.findIndex((node) => dx >= node.x && dx <= node.x + boxWidth && dy >= node.y &&
                                          dy <= node.y + boxHeight);
  }

  // The boxes of a region, or where it would be.
  boxesOf(region) {
    const boxes = this.nodes.filter((node) => node.region === region).map((node) => node.index);
    return boxes.length > 0 ? boxes : this.around.get(region) ?? [];
  }

  select(index, region) {
    this.selected = index;
    this.region = region;
    this.describe();
    this.redraw();
  }

  hover(index) {
    if (index === this.hovered) return;
    this.hovered = index;
    this.canvas.style.cursor = index >= 0 ? 'pointer' : '';
    this.describe();
    this.redraw();
  }

  describe() {
    const index = this.hovered >= 0 ? this.hovered : this.selected;
    this.panel.replaceChildren(...(index < 0 ? [] : description(this.nodes[index])));
  }

  redraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.draw();
    });
  }

  draw() {
    const context = this.canvas.getContext('2d');
    const {x, y, scale} = this.view;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    const zoomed = scale * this.ratio;
    context.setTransform(zoomed, 0, 0, zoomed, -x * zoomed, -y * zoomed);
    const seen = {left: x, top: y, right: x + this.canvas.clientWidth / scale,
                  bottom: y + this.canvas.clientHeight / scale};
    this.drawEdges(context, seen, scale);
    let drawn = 0;
    for (const node of this.nodes) {
      if (node.y > seen.bottom || node.y + boxHeight < seen.top || node.x > seen.right ||
          node.x + boxWidth < seen.left) continue;
      this.drawNode(context, node, scale);
      ++drawn;
    }
    this.canvas.dataset.drawn = drawn;  // For who looks at the page without eyes.
    this.drawMap(seen);
  }

  drawEdges(context, seen, scale) {
    const near = this.hovered >= 0 ? this.hovered : this.selected;
    for (const strong of [false, true]) {
      context.beginPath();
      for (const edge of this.edges) {
        if (edge.to.y < seen.top || edge.from.y > seen.bottom) continue;
        if ((edge.from.index === near || edge.to.index === near) !== strong) continue;
        trace(context, edge.points);
      }
      context.lineWidth = (strong ? 2 : 1) / Math.min(1, Math.max(scale, 0.3));
      context.strokeStyle = strong ? colours['edge-near'] : colours.edge;
      context.stroke();
    }
  }

  drawNode(context, node, scale) {
    const dimmed = this.found.size > 0 && !this.found.has(node.index);
    context.globalAlpha = dimmed ? 0.3 : 1;
    context.fillStyle = fillOf(node);
    context.strokeStyle = lineOf(node);
    context.lineWidth = (node.region > 0 ? 1.5 : 1) / Math.min(1, Math.max(scale, 0.3));
    context.setLineDash(node.kind === kinds.carried ? [5, 3] : []);
    context.beginPath();
    context.roundRect(node.x, node.y, boxWidth, boxHeight, node.kind === kinds.input ? boxHeight / 2 : 5);
    context.fill();
    context.stroke();
    context.setLineDash([]);
    if (node.output) {
      context.fillStyle = lineOf(node);
      context.fillRect(node.x + boxWidth / 2 - 14, node.y + boxHeight, 28, 4);
    }
    if (this.highest > 0 && node.cost > 0) {
      context.fillStyle = colours.cost;
      context.fillRect(node.x + 6, node.y + boxHeight - 5, Math.max(1, (boxWidth - 12) * node.cost / this.highest), 3);
    }
    if (scale >= labelScale) this.drawLabels(context, node);
    this.drawMarks(context, node, scale);
    context.globalAlpha = 1;
  }

  drawLabels(context, node) {
    context.textAlign = 'center';
    context.textBaseline = 'alphabetic';
    context.fillStyle = colours.text;
    context.font = '600 12px system-ui, sans-serif';
    const middle = node.x + boxWidth / 2;
    context.fillText(fitting(context, node.label, boxWidth - 12), middle, node.y + 15);
    context.fillStyle = colours.faint;
    context.font = '10.5px system-ui, sans-serif';
    const below = node.cost > 0 ? `${microseconds(node.cost)} \u00b7 ${node.types}` : node.types;
    context.fillText(fitting(context, below, boxWidth - 12), middle, node.y + 28);
  }

  drawMarks(context, node, scale) {
    const selected = node.index === this.selected;
    const together = this.region > 0 && node.region === this.region;
    const found = this.found.has(node.index);
    if (!selected && !together && !found && node.index !== this.hovered) return;
    context.strokeStyle = selected || node.index === this.hovered ? colours.selected : found ? colours.found
                                                                                      : lineOf(node);
    context.lineWidth = (selected ? 3 : 2.5) / Math.min(1, Math.max(scale, 0.2));
    context.beginPath();
    context.roundRect(node.x - 2, node.y - 2, boxWidth + 4, boxHeight + 4, 7);
    context.stroke();
  }

  // The whole graph, squeezed, with what is in view.
  drawMap(seen) {
    const {map} = this;
    const sx = (map.width - 4) / this.width, sy = map.height / this.height;
    if (!this.overview) {
      this.overview = document.createElement('canvas');
      this.overview.width = map.width;
      this.overview.height = map.height;
      const context = this.overview.getContext('2d');
      for (const node of this.nodes) {
        const found = this.found.has(node.index);
        context.fillStyle = found ? colours.found : node.region > 0 ? lineOf(node) : colours['box-line'];
        context.globalAlpha = this.found.size > 0 && !found ? 0.3 : 1;
        context.fillRect(2 + node.x * sx, node.y * sy, Math.max(1.5, boxWidth * sx), Math.max(1.5, boxHeight * sy));
      }
    }
    const context = map.getContext('2d');
    context.clearRect(0, 0, map.width, map.height);
    context.drawImage(this.overview, 0, 0);
    context.strokeStyle = colours.after;
    context.lineWidth = 2;
    const left = Math.max(1, 2 + seen.left * sx), top = Math.max(1, seen.top * sy);
    context.strokeRect(left, top, Math.max(4, Math.min(map.width - 1, 2 + seen.right * sx) - left),
                       Math.max(4, Math.min(map.height - 1, seen.bottom * sy) - top));
  }

  // The box that an arrow key leads to.
  neighbour(key) {
    const node = this.nodes[this.selected];
    if (!node) return this.nodes.length > 0 ? 0 : -1;
    if (key === 'ArrowUp') return node.reads[0] ?? node.index;
    if (key === 'ArrowDown') return node.readers[0] ?? node.index;
    const next = this.nodes[node.index + (key === 'ArrowLeft' ? -1 : 1)];
    return next && next.layer === node.layer ? next.index : node.index;
  }
}

function trace(context, points) {
  context.moveTo(...points[0]);
  for (let i = 1; i < points.length; ++i) {
    const [x1, y1] = points[i - 1], [x2, y2] = points[i];
    if (x1 === x2) {
      context.lineTo(x2, y2);
    } else {
      const bend = (y2 - y1) / 2;
      context.bezierCurveTo(x1, y1 + bend, x2, y2 - bend, x2, y2);
    }
  }
}

// ---- What is told of a node.

function element(name, content, parent) {
  const made = document.createElement(name);
  made.textContent = content;
  parent?.append(made);
  return made;
}

function description(node) {
  const title = element('strong', node.label);
  const list = document.createElement('dl');
  const row = (name, value) => {
    if (!value) return;
    element('dt', name, list);
    element('dd', value, list);
  };
  const role = ['input of the model', '', 'carried, not understood'][node.kind];
  row('is', [role, node.output ? 'output of the model' : ''].filter(Boolean).join(', '));
  row('reason', node.kind === kinds.carried ? carriedReasons.get(node.label) : '');
  row('from', node.name);
  row('makes', node.types);
  row('attributes', node.attributes);
  row('changed', node.region > 0 ? `region ${node.region} of ${data.regions}` : '');
  for (const launch of node.launches) {
    row(node.launches.length > 1 ? launch.op : 'kernel', launch.implementation || launch.op);
    row('layouts', launch.layouts);
    row('work', `${number3(launch.mflop)} MFLOP, ${number3(launch.megabytes)} MB`);
    const times = [];
    if (launch.predicted !== null) times.push(`${microseconds(launch.predicted)} predicted`);
    if (launch.measured !== null) times.push(`${microseconds(launch.measured)} measured`);
    row('time', times.join(', '));
  }
  return [title, list];
}

// ---- Both graphs together.

let views = [];

// Selects a box and shows what it is on the other side.
function choose(side, index, {moveOwn = false} = {}) {
  const own = views[side], other = views[1 - side];
  const node = own.nodes[index];
  if (!node) {
    for (const view of views) view.select(-1, 0);
    return;
  }
  own.select(index, node.region);
  if (moveOwn) own.reveal([index]);
  other.select(node.twin, node.region);
  if (node.region > 0) other.reveal(other.boxesOf(node.region));
  else if (node.twin >= 0) other.reveal([node.twin]);
}

function showRegion(region) {
  for (const view of views) {
    const boxes = view.boxesOf(region);
    view.select(boxes[0] ?? -1, region);
    view.reveal(boxes);
  }
}

function pointerAnswers(side) {
  const view = views[side], {canvas} = view;
  let from = null, travelled = 0;
  canvas.addEventListener('pointerdown', (event) => {
    from = [event.offsetX, event.offsetY];
    travelled = 0;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    if (!from) {
      view.hover(view.at(event.offsetX, event.offsetY));
      return;
    }
    const dx = event.offsetX - from[0], dy = event.offsetY - from[1];
    travelled += Math.abs(dx) + Math.abs(dy);
    from = [event.offsetX, event.offsetY];
    if (travelled < 4) return;
    canvas.classList.add('moving');
    view.pan(-dx, -dy);
  });
  canvas.addEventListener('pointerup', (event) => {
    canvas.classList.remove('moving');
    if (from && travelled < 4) choose(side, view.at(event.offsetX, event.offsetY));
    from = null;
  });
  canvas.addEventListener('pointercancel', () => { from = null; });
  canvas.addEventListener('pointerleave', () => view.hover(-1));
  canvas.addEventListener('dblclick', (event) => view.zoom(2, event.offsetX, event.offsetY));
  canvas.addEventListener('wheel', (event) => {
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;  // The page scrolls.
    event.preventDefault();
    view.zoom(Math.exp(-event.deltaY / (event.deltaMode === 0 ? 400 : 12)), event.offsetX, event.offsetY);
  }, {passive: false});
  mapAnswers(view);
}

function mapAnswers(view) {
  const go = (event) => {
    if (event.buttons === 0) return;
    view.moved = true;
    view.centre(event.offsetX / view.map.clientWidth * view.width, event.offsetY / view.map.clientHeight * view.height);
  };
  view.map.addEventListener('pointerdown', go);
  view.map.addEventListener('pointermove', go);
}

function keyAnswers(side) {
  const view = views[side];
  const pans = {ArrowUp: [0, -60], ArrowDown: [0, 60], ArrowLeft: [-60, 0], ArrowRight: [60, 0]};
  const others = {
    '+': () => view.zoom(1.25),
    '=': () => view.zoom(1.25),
    '-': () => view.zoom(0.8),
    '0': () => view.fit(),
    'Escape': () => choose(side, -1),
    'Enter': () => {
      choose(side, view.selected);
      if (view.selected >= 0) views[1 - side].canvas.focus();
    },
  };
  view.canvas.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in pans && event.shiftKey) {
      view.pan(...pans[event.key]);
    } else if (event.key in pans) {
      view.hover(-1);
      choose(side, view.neighbour(event.key), {moveOwn: true});
    } else if (event.key in others) {
      others[event.key]();
    } else {
      return;
    }
    event.preventDefault();
  });
  view.canvas.addEventListener('focus', () => {
    if (view.selected < 0 && view.nodes.length > 0 && view.canvas.matches(':focus-visible')) view.select(0, 0);
  });
  view.figure.querySelector('.in').addEventListener('click', () => view.zoom(1.4));
  view.figure.querySelector('.out').addEventListener('click', () => view.zoom(1 / 1.4));
  view.figure.querySelector('.fit').addEventListener('click', () => view.fit());
}

// ---- Search.

const search = document.getElementById('search');
let hits = [], current = -1;  // Pairs of side and box.

function find() {
  const wanted = search.value.trim().toLowerCase();
  hits = [];
  current = -1;
  views.forEach((view, side) => {
    const boxes = wanted ? view.nodes.filter((node) => node.searched.includes(wanted)) : [];
    view.found = new Set(boxes.map((node) => node.index));
    view.overview = null;
    hits.push(...boxes.map((node) => [side, node.index]));
    view.redraw();
  });
  const count = (side) => hits.filter(([of]) => of === side).length;
  document.getElementById('found').textContent =
      !wanted ? '' : hits.length === 0 ? 'nothing found' : `${count(0)} in the original, ${count(1)} in the result`;
}

function step(by) {
  if (hits.length === 0) return;
  current = (current + by + hits.length + (current < 0 && by < 0 ? 1 : 0)) % hits.length;
  const [side, index] = hits[current];
  choose(side, index, {moveOwn: true});
}

function searchFor(wanted) {
  search.value = wanted;
  find();
  step(1);
}

function searchAnswers() {
  search.addEventListener('input', find);
  search.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') step(event.shiftKey ? -1 : 1);
  });
  document.getElementById('next').addEventListener('click', () => step(1));
  document.getElementById('previous').addEventListener('click', () => step(-1));
  for (const button of document.querySelectorAll('.find'))
    button.addEventListener('click', () => {
      searchFor(button.textContent);
      document.querySelector('.pair').scrollIntoView({block: 'center'});
    });
  // A link may name what to look for: report.html#search=relu.
  const linked = new URLSearchParams(location.hash.slice(1)).get('search');
  if (linked) searchFor(linked);
}

// ---- The places of rules, listed when a rule is unfolded; equal places once.

// Of the rule of application number `first`.
function placesOf(first) {
  const {rule: rules, place, names, region, before, after} = data.applications;
  const places = new Map();
  rules.forEach((number, i) => {
    if (number !== rules[first]) return;
    const nodes = names[i].map(text).join(', ');
    const told = text(place[i]) + (nodes ? ` of ${nodes}` : '');
    const one = places.get(`${told}|${region[i]}`) ?? {told, region: region[i], count: 0, gains: []};
    ++one.count;
    if (i < data.baseline) one.gains.push('baseline');
    else if (data.unit) one.gains.push(`${before[i]} \u2192 ${after[i]} ${data.unit}`);
    places.set(`${told}|${region[i]}`, one);
  });
  return [...places.values()];
}

function ruleAnswers() {
  for (const details of document.querySelectorAll('.rule'))
    details.addEventListener('toggle', () => {
      const list = details.querySelector('ol');
      if (!details.open || list.children.length > 0) return;
      for (const one of placesOf(Number(details.dataset.first))) {
        const item = element('li', '', list);
        const button = element('button', one.told, item);
        button.type = 'button';
        button.addEventListener('click', () => {
          showRegion(one.region);
          document.querySelector('.pair').scrollIntoView({block: 'center'});
        });
        const gains = [...one.gains.slice(0, 3), ...(one.gains.length > 3 ? ['\u2026'] : [])].join('; ');
        item.append(one.count > 1 ? ` \u00d7${one.count}` : '', gains ? ` (${gains})` : '');
      }
    });
}

readColours();
views = [...document.querySelectorAll('.graph')].map((figure, side) => new GraphView(figure, data.graphs[side]));
views.forEach((view, side) => {
  pointerAnswers(side);
  keyAnswers(side);
});
scheme.addEventListener('change', () => {
  readColours();
  for (const view of views) {
    view.overview = null;
    view.redraw();
  }
});
searchAnswers();
ruleAnswers();
