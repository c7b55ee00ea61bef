import axios from "axios";

const attack = () => axios;
