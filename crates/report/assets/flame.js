(() => {
  "use strict";
  const svg = document.currentScript.closest("svg");
  const total = Number(svg.dataset.total), letter = Number(svg.dataset.letter);
  let width = Number(svg.dataset.width);
  const frames = Array.from(svg.querySelectorAll(".frame"), (group) => ({
    group, rect: group.querySelector("rect"), text: group.querySelector("text"), name: group.dataset.name,
    left: Number(group.dataset.x), size: Number(group.dataset.w), y: Number(group.querySelector("rect").getAttribute("y")),
  }));
  const reset = svg.querySelector(".reset");

  // As much of a name as there is room for.
  const shortened = (name, pixels) => {
    const room = Math.floor((pixels - 6) / letter), letters = Array.from(name);
    if (letters.length <= room) return name;
    return room < 3 ? "" : letters.slice(0, room - 1).join("") + "\u2026";
  };

  // Shows a part of the picture, with the callers of the frame as wide as the picture.
  let shown = [0, total, Infinity];
  const show = (left, size, y) => {
    shown = [left, size, y];
    const scale = width / size;
    for (const frame of frames) {
      const isCaller = frame.y > y && frame.left <= left && frame.left + frame.size >= left + size;
      const isInside = frame.y <= y && frame.left >= left && frame.left + frame.size <= left + size;
      const pixels = isCaller ? width : frame.size * scale;
      frame.group.style.display = (isCaller || isInside) && pixels >= 0.1 ? "" : "none";
      frame.group.classList.toggle("faded", isCaller);
      const x = isCaller ? 0 : (frame.left - left) * scale;
      frame.rect.setAttribute("x", x);
      frame.rect.setAttribute("width", pixels);
      frame.text.setAttribute("x", x + 3);
      frame.text.textContent = shortened(frame.name, pixels);
    }
    if (size < total) reset.removeAttribute("hidden");
    else reset.setAttribute("hidden", "");
  };

  for (const frame of frames) {
    frame.group.addEventListener("click", () => show(frame.left, frame.size, frame.y));
  }
  reset.addEventListener("click", () => show(0, total, Infinity));

  // The share of frames whose function has the text in its name; those within others count once.
  const search = (text) => {
    const found = frames.filter((frame) => text !== "" && frame.name.includes(text));
    for (const frame of frames) frame.group.classList.toggle("found", found.includes(frame));
    let sum = 0, end = -1;
    for (const { left, size } of found.toSorted((a, b) => a.left - b.left || b.size - a.size)) {
      if (left >= end) {
        sum += size;
        end = left + size;
      }
    }
    return text === "" ? "" : `${(100 * sum / total).toFixed(2)} % in functions with this name, and what they call`;
  };
  const field = document.getElementById("search");
  // In a page the picture is drawn as wide as there is room: scaled down, its letters could not be read.
  const fit = () => {
    if (!field || svg.clientWidth < 1) return;
    width = svg.clientWidth;
    svg.setAttribute("width", width);
    svg.setAttribute("viewBox", `0 0 ${width} ${svg.getAttribute("height")}`);
    reset.setAttribute("x", width - 90);
    show(...shown);
  };
  window.addEventListener("resize", fit);
  fit();
  field?.addEventListener("input", () => {
    document.getElementById("found").textContent = search(field.value);
  });
})();
