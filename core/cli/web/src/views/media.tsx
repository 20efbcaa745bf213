// Pictures, sound and documents, as objects of the browser: nothing in them can reach the page.
import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { bytesOf, type Contents } from '../api';
import { sizeText } from '../catalog';

/** The address of an object of the browser, as long as the component is shown. */
function useObject(contents: Contents, type: string): string {
  const url = useMemo(() => {
    const bytes = contents.blob !== undefined ? bytesOf(contents.blob) : new TextEncoder().encode(contents.text ?? '');
    return URL.createObjectURL(new Blob([bytes], { type }));
  }, [contents, type]);
  useEffect(() => () => URL.revokeObjectURL(url), [url]);
  return url;
}

export function ImageView({ contents, type }: { contents: Contents; type: string }): JSX.Element {
  const url = useObject(contents, type);
  const [size, setSize] = useState('');
  const [isBad, setIsBad] = useState(false);
  return (
    <figure class="image">
      {isBad ? (
        <p class="empty">The browser cannot show this picture.</p>
      ) : (
        <img
          src={url}
          alt={contents.uri}
          onLoad={(event) => setSize(`${event.currentTarget.naturalWidth} × ${event.currentTarget.naturalHeight}, `)}
          onError={() => setIsBad(true)}
        />
      )}
      <figcaption>
        {size}
        {sizeText(contents.size)}
      </figcaption>
    </figure>
  );
}

export function AudioView({ contents, type }: { contents: Contents; type: string }): JSX.Element {
  // biome-ignore lint/a11y/useMediaCaption: a resource has no captions
  return <audio class="media" controls src={useObject(contents, type)} aria-label={`Sound ${contents.uri}`} />;
}

export function VideoView({ contents, type }: { contents: Contents; type: string }): JSX.Element {
  // biome-ignore lint/a11y/useMediaCaption: a resource has no captions
  return <video class="media" controls src={useObject(contents, type)} aria-label={`Film ${contents.uri}`} />;
}

export function PdfView({ contents }: { contents: Contents }): JSX.Element {
  return <iframe class="pdf" src={useObject(contents, 'application/pdf')} title={`Document ${contents.uri}`} />;
}
