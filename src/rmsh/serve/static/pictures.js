// Receives an image that is chosen, dropped on the page or pasted.

const hasFiles = (transfer) => [...(transfer?.types ?? [])].includes("Files");

export function catchPictures({ choose, file, overlay }, take, refuse) {
  choose.addEventListener("click", () => file.click());
  file.addEventListener("change", () => {
    if (file.files[0]) take(file.files[0]);
    file.value = ""; // so that the same file can be chosen again
  });

  addEventListener("dragenter", (event) => { if (hasFiles(event.dataTransfer)) overlay.hidden = false; });
  addEventListener("dragover", (event) => { if (hasFiles(event.dataTransfer)) event.preventDefault(); });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) overlay.hidden = true; });
  addEventListener("drop", (event) => {
    overlay.hidden = true;
    if (!hasFiles(event.dataTransfer)) return;
    event.preventDefault();
    const given = event.dataTransfer.files[0];
    if (given) take(given);
    else refuse("That is not a file; drop an image from a folder.");
  });

  addEventListener("paste", (event) => {
    const pasted = [...(event.clipboardData?.files ?? [])].find((given) => given.type.startsWith("image/"));
    if (!pasted) return;
    event.preventDefault();
    take(pasted);
  });
}
