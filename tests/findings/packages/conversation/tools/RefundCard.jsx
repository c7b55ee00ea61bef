export default function RefundCard(props) {
  return <button onClick={() => props.answer({accepted: true})}>Accept</button>;
}
